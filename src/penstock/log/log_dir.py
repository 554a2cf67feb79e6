"""One log directory: whether it is online, who owns it, and how its last owner stopped."""

import logging
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final

from penstock.errors import StorageError
from penstock.log.checkpoint_files import CheckpointFiles
from penstock.log.files import Files, OutOfFiles, replace
from penstock.types import TopicPartition

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
BOOT_ID: Final = ".penstock_boot_id"
UNCLEAN_SHUTDOWN: Final = ".penstock_unclean_shutdown"
LOCK: Final = ".lock"

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
        self._files = files
        self.path = path
        self.checkpoints = CheckpointFiles(files, path)
        self.failure: StorageError | None = None
        self.clean = False
        """The last broker stopped cleanly: its logs need no recovery."""
        self.lost_page_cache = False
        """The machine restarted after an unclean stop: what was not synced is gone."""
        self.had_unclean_shutdown = False
        """Acknowledged records may be missing: KIP-966's unclean shutdown."""
        self.stale_names: set[TopicPartition] = set()
        """Partitions that the checkpoint files may still name although their logs are gone."""
        self._on_failure = on_failure
        self._release: Callable[[], None] | None = None
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

    def mark_unclean_shutdown(self) -> None:
        """Note that acknowledged records may be missing, until other replicas have made up for it.

        The note is on disk: a broker that waits for them may be restarted, and its logs look whole
        by then.
        """
        if not self.had_unclean_shutdown:
            replace(self._files, self.path / UNCLEAN_SHUTDOWN, b"")
            self.had_unclean_shutdown = True

    def clear_unclean_shutdown(self) -> None:
        self._files.remove(self.path / UNCLEAN_SHUTDOWN)
        self.had_unclean_shutdown = False

    def lock(self) -> None:
        """Lock out other processes; changes nothing else."""
        if self._release is None:
            if not self._files.exists(self.path):
                self._files.make_dir(self.path)
                self._files.sync_dir(self.path.parent)
            self._release = self._files.lock(self.path / LOCK)

    def acquire(self, boot_id: str) -> None:
        """Lock it, and find out how the last broker stopped.

        The marker of a clean stop is removed before the first byte is written.
        """
        self.lock()
        self.clean = self._files.exists(self.path / CLEAN_SHUTDOWN)
        self._files.remove(self.path / CLEAN_SHUTDOWN)
        boot = self.path / BOOT_ID
        last_boot = self._files.read(boot).decode() if self._files.exists(boot) else ""
        self.lost_page_cache = not self.clean and last_boot not in {"", boot_id}
        self.had_unclean_shutdown = self._files.exists(self.path / UNCLEAN_SHUTDOWN)
        if self.lost_page_cache:
            self.mark_unclean_shutdown()
        replace(self._files, boot, boot_id.encode())

    def release(self, *, broker_epoch: int | None) -> None:
        """Unlock it; with a broker epoch, mark it as cleanly stopped (KIP-966)."""
        if broker_epoch is not None:
            marker = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
            replace(self._files, self.path / CLEAN_SHUTDOWN, marker.encode())
        if self._release is not None:
            self._release()
            self._release = None
