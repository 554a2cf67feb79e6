"""What the logs need by time: retention, flushes, checkpoints, expiry, removal of what was dropped.

`tick` is called about once a second by the broker's loop; time is an argument.
"""

import logging
from collections.abc import Iterator
from contextlib import suppress

from penstock.config.storage import StorageConfig
from penstock.errors import StorageError
from penstock.log.files import remove_flat_dir
from penstock.log.flush import Flusher
from penstock.log.log_dir import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, LogDir
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogStore

logger = logging.getLogger(__name__)

HIGH_WATERMARK_INTERVAL_MS = 5_000

LOGS_A_TICK = 100
"""Retention looks at so many logs at a time, so as not to hold up the loop."""


class Upkeep:
    """The periodic work of one store. Syncs and checkpoints run on the flusher's threads."""

    def __init__(self, store: LogStore, flusher: Flusher, config: StorageConfig) -> None:
        self._store = store
        self._flusher = flusher
        self._config = config
        self._due: dict[str, int] = {}
        self._retaining: Iterator[PartitionLog] = iter(())

    def tick(self, now_ms: int) -> None:
        config = self._config
        self._flush(now_ms)
        self._remove_deleted(now_ms)
        if self._is_due("retention", config.log_retention_check_interval_ms, now_ms):
            self._retaining = iter(list(self._store.logs.values()))
        self._retain(now_ms)
        if self._is_due("expiry", config.producer_id_expiration_check_interval_ms, now_ms):
            for log in self._store.logs.values():
                log.producers.expire(now_ms, config.producer_id_expiration_ms)
        for name, interval_ms in (
            (HIGH_WATERMARKS, HIGH_WATERMARK_INTERVAL_MS),
            (RECOVERY_POINTS, config.log_flush_offset_checkpoint_interval_ms),
            (LOG_STARTS, config.log_flush_start_offset_checkpoint_interval_ms),
        ):
            if self._is_due(name, interval_ms, now_ms):
                for log_dir in self._store.online:
                    self._checkpoint(log_dir, name)

    def _is_due(self, what: str, interval_ms: int, now_ms: int) -> bool:
        if now_ms < self._due.setdefault(what, now_ms + interval_ms):
            return False
        self._due[what] = now_ms + interval_ms
        return True

    def _flush(self, now_ms: int) -> None:
        for log in self._online_logs():
            if log.is_flush_due(now_ms):
                log.last_flush_ms = now_ms
                self._flusher.request(log)

    def _retain(self, now_ms: int) -> None:
        for _, log in zip(range(LOGS_A_TICK), self._retaining, strict=False):
            if log.log_dir.failure is None:
                with suppress(StorageError):  # its directory goes offline, and says so
                    log.delete_old_segments(now_ms)

    def _remove_deleted(self, now_ms: int) -> None:
        for log in self._online_logs():
            with suppress(StorageError), log.log_dir:
                log.segments.remove_deleted(now_ms)
        due = [entry for entry in self._store.deleted if entry[0] <= now_ms]
        for entry in due:
            self._store.deleted.remove(entry)
            try:
                remove_flat_dir(self._store.files, entry[1])
            except StorageError as error:
                logger.warning("a deleted partition's files stay: %s", error)

    def _online_logs(self) -> Iterator[PartitionLog]:
        return (log for log in self._store.logs.values() if log.log_dir.failure is None)

    def _checkpoint(self, log_dir: LogDir, name: str) -> None:
        write = log_dir.checkpoint(name, self._store.offsets(log_dir, name))
        self._flusher.run(write, log_dir.fail)
