"""One log directory: whether it is online."""

import logging
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final

from penstock.errors import StorageError
from penstock.log.checkpoint_files import CheckpointFiles
from penstock.log.files import Files, OutOfFiles
from penstock.log.log_dir_owner import LogDirOwner
from penstock.types import TopicPartition

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"

logger = logging.getLogger(__name__)


class LogDirOffline(StorageError):
    """The directory failed before; nothing is read from it or written to it until a restart."""


class LogDir:
    """A directory goes offline at its first failure, with all its logs, until a restart.

    After a failed fsync the kernel may have dropped the pages that it could not write, so nothing
    later may be acknowledged. `with log_dir:` refuses work while the directory is offline, and
    takes it offline if the work fails. A lack of file descriptors does not count: it passes.
    """

    def __init__(
        self,
        files: Files,
        path: Path,
        on_failure: Callable[["LogDir"], None] | None = None,
    ) -> None:
        self.path = path
        self.owner = LogDirOwner(files, path)
        self.checkpoints = CheckpointFiles(files, path)
        self.failure: StorageError | None = None
        self.stale_names: set[TopicPartition] = set()
        """Partitions that the checkpoint files may still name although their logs are gone."""
        self._on_failure = on_failure
        self._lacked_files = False

    def __enter__(self) -> None:
        if self.failure is not None:
            self.check()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, StorageError) and not isinstance(error, LogDirOffline):
            self.fail(error)

    def fail(self, error: StorageError) -> None:
        if isinstance(error, OutOfFiles):
            level = logging.DEBUG if self._lacked_files else logging.WARNING
            logger.log(level, "%s; raise the limit of open files (ulimit -n)", error)
            self._lacked_files = True
        elif self.failure is None:
            self.failure = error
            logger.error("log directory %s goes offline: %s", self.path, error)
            if self._on_failure is not None:
                self._on_failure(self)

    def check(self) -> None:
        if self.failure is not None:
            raise LogDirOffline(f"log directory {self.path} is offline: {self.failure}")
