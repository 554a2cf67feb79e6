"""Periodic work on logs: retention, flushes, checkpoints, producer expiry, removal of files.

`tick` is called about once a second by the broker's loop; time is an argument. Intervals count by
the monotonic clock, ages of records and producers by the wall clock, which may be set back.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain

from penstock.config.storage import StorageConfig
from penstock.errors import KafkaError, StorageError
from penstock.log.files import remove_flat_dir
from penstock.log.flush import Flusher
from penstock.log.log_dir import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, LogDir
from penstock.log.old_segments import delete_old_segments
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogStore

logger = logging.getLogger(__name__)

HIGH_WATERMARK_INTERVAL_MS = 5_000

LOGS_A_TURN = 100
SEGMENTS_A_TURN = 20
"""Retention checks at most this many logs at a time and deletes at most this many segments, each of
which takes the loop a millisecond. Producers choose timestamps, and with them how many segments
there are, and how many are too old.
"""


class Upkeep:
    """The periodic work of one store. Syncs and checkpoints run on the flusher's threads."""

    def __init__(
        self,
        store: LogStore,
        flusher: Flusher,
        config: Callable[[], StorageConfig],
        high_watermark_interval_ms: int = HIGH_WATERMARK_INTERVAL_MS,
    ) -> None:
        self._store = store
        self._flusher = flusher
        self._config = config
        self._high_watermark_interval_ms = high_watermark_interval_ms
        self._due: dict[str, int] = {}
        self._retaining: deque[PartitionLog] = deque()
        """Logs that retention has yet to check."""

    def tick(self, now_ms: int, monotonic_ms: int) -> bool:
        """Do what is due; returns whether to call `retain` before the next tick."""
        config = self._config()
        first_ms = config.log_initial_task_delay_ms
        self._flush(monotonic_ms)
        self._remove_deleted(monotonic_ms)
        check_ms = config.log_retention_check_interval_ms
        if self._is_due("retention", check_ms, monotonic_ms, first_ms):
            self._retaining = deque(self._store.logs.values())
        has_more = self.retain(now_ms)
        check_ms = config.producer_id_expiration_check_interval_ms
        if self._is_due("expiry", check_ms, monotonic_ms, check_ms):
            for log in self._store.logs.values():
                log.producers.expire(now_ms, config.producer_id_expiration_ms)
        points_ms = config.log_flush_offset_checkpoint_interval_ms
        starts_ms = config.log_flush_start_offset_checkpoint_interval_ms
        marks_ms = self._high_watermark_interval_ms
        for name, interval_ms, delay_ms in (
            (HIGH_WATERMARKS, marks_ms, marks_ms),
            (RECOVERY_POINTS, points_ms, first_ms),
            (LOG_STARTS, starts_ms, first_ms),
        ):
            if self._is_due(name, interval_ms, monotonic_ms, delay_ms):
                for log_dir in self._store.online:
                    self._checkpoint(log_dir, name)
        return has_more

    def _is_due(self, what: str, interval_ms: int, monotonic_ms: int, first_ms: int) -> bool:
        """Once after `first_ms`, then at each interval."""
        if monotonic_ms < self._due.setdefault(what, monotonic_ms + first_ms):
            return False
        self._due[what] = monotonic_ms + interval_ms
        return True

    def _flush(self, monotonic_ms: int) -> None:
        for log in self._online_logs():
            if log.is_flush_due(monotonic_ms):
                log.last_flush_ms = monotonic_ms
                self._flusher.request(log)

    def retain(self, now_ms: int) -> bool:
        """Delete some old segments; returns whether more of them may wait."""
        left = SEGMENTS_A_TURN
        for _ in range(min(LOGS_A_TURN, len(self._retaining))):
            log = self._retaining[0]
            if log.log_dir.failure is None:
                with _contained(log):
                    left -= delete_old_segments(log, now_ms, left)
            self._retaining.popleft()
            if not left:
                self._retaining.append(log)  # it may have more
                return True
        return False

    def _remove_deleted(self, monotonic_ms: int) -> None:
        for log in chain(self._online_logs(), self._store.future_logs.values()):
            if log.segments.has_deleted and log.log_dir.failure is None:
                self._flusher.run(log.segments.removal(monotonic_ms), log.log_dir.fail)
        for path in self._store.deleted.due(monotonic_ms):
            remove = partial(remove_flat_dir, self._store.files, path)
            self._flusher.run(remove, _warn_of_what_stays)

    def _online_logs(self) -> Iterator[PartitionLog]:
        return (log for log in self._store.logs.values() if log.log_dir.failure is None)

    def _checkpoint(self, log_dir: LogDir, name: str) -> None:
        write = log_dir.checkpoints.writer(name, self._store.offsets(log_dir, name))
        self._flusher.run(write, log_dir.fail)


def _warn_of_what_stays(error: StorageError) -> None:
    logger.warning("a deleted partition's files stay: %s", error)


@contextmanager
def _contained(log: PartitionLog) -> Iterator[None]:
    """A failure of one log does not stop the work on others."""
    try:
        yield
    except StorageError:
        pass  # its directory goes offline, and logs why
    except KafkaError as error:
        logger.error("%s: old segments stay: %s", log.topic_partition, error)
