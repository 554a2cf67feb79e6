"""Which process owns a log directory, and how its last owner stopped."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from penstock.log.files import Files, replace

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
BOOT_ID: Final = ".penstock_boot_id"
UNCLEAN_SHUTDOWN: Final = ".penstock_unclean_shutdown"
LOCK: Final = ".lock"


class LogDirOwner:
    """The lock of a directory, and the marks that its owner leaves for the next one."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files, self._path = files, path
        self.was_clean = False
        """The last broker stopped cleanly: its logs need no recovery."""
        self.lost_page_cache = False
        """The machine restarted after an unclean stop: what was not synced is gone."""
        self.had_unclean_shutdown = False
        """Acknowledged records may be missing: KIP-966's unclean shutdown."""
        self._release: Callable[[], None] | None = None

    def mark_unclean_shutdown(self) -> None:
        """Note that acknowledged records may be missing, until other replicas have made up for it.

        The note is on disk: a broker that waits for them may be restarted, and its logs look whole
        by then.
        """
        if not self.had_unclean_shutdown:
            replace(self._files, self._path / UNCLEAN_SHUTDOWN, b"")
            self.had_unclean_shutdown = True

    def clear_unclean_shutdown(self) -> None:
        self._files.remove(self._path / UNCLEAN_SHUTDOWN)
        self.had_unclean_shutdown = False

    def lock(self) -> None:
        """Lock out other processes; changes nothing else."""
        if self._release is None:
            if not self._files.exists(self._path):
                self._files.make_dir(self._path)
                self._files.sync_dir(self._path.parent)
            self._release = self._files.lock(self._path / LOCK)

    def acquire(self, boot_id: str) -> None:
        """Lock it, and find out how the last broker stopped.

        The marker of a clean stop is removed before the first byte is written.
        """
        self.lock()
        self.was_clean = self._files.exists(self._path / CLEAN_SHUTDOWN)
        self._files.remove(self._path / CLEAN_SHUTDOWN)
        boot = self._path / BOOT_ID
        last_boot = self._files.read(boot) if self._files.exists(boot) else b""
        self.lost_page_cache = not self.was_clean and last_boot not in {b"", boot_id.encode()}
        self.had_unclean_shutdown = self._files.exists(self._path / UNCLEAN_SHUTDOWN)
        if self.lost_page_cache:
            self.mark_unclean_shutdown()
        replace(self._files, boot, boot_id.encode())

    def release(self, *, broker_epoch: int | None) -> None:
        """Unlock it; with a broker epoch, mark it as cleanly stopped (KIP-966)."""
        if broker_epoch is not None:
            marker = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
            replace(self._files, self._path / CLEAN_SHUTDOWN, marker.encode())
        if self._release is not None:
            self._release()
            self._release = None
