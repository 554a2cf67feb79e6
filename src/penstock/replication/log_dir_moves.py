"""Moves replicas between the log directories of a broker (KIP-113).

A future log in the other directory follows the current log until it has caught up, and then
replaces it. The partition is served meanwhile; only the last step, two renames, blocks it.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from penstock.clock import Clock
from penstock.config.value import LONG_MAX
from penstock.errors import ErrorCode, KafkaError, StorageError
from penstock.log.flush import Flusher
from penstock.log.follower_append import append_as_follower
from penstock.log.naming import may_move
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogDirNotFound
from penstock.log.truncation import truncate_fully_and_start_at, truncate_to
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.replication.throttle import Throttle
from penstock.types import TopicPartition

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
"""Bytes copied at a time, which takes the loop some milliseconds."""

THROTTLE_CHECK_MS = 100
"""Longest wait before the rate is checked again: it may have been altered."""

CHECK_S = 1

FLUSHES_OFF_LOOP = 3
"""Flushes of a copy that has caught up. Each leaves less to sync when the copy takes over, but none
leaves nothing where records arrive faster than a disk syncs.
"""

MOST_ON_LOOP_BYTES = 1 << 26
"""More than this is always flushed off the loop: a slow or throttled copy that catches up late may
have very much to sync.
"""


class TopicNameTooLong(KafkaError):
    """The future log's directory name would be too long, as in Kafka (KAFKA-4893)."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class LogDirCordoned(KafkaError):
    """The directory gets no new partitions (KIP-1066)."""

    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class LogDirMoves:
    """Starts moves and carries them out in `run`. Belongs to the event loop.

    `on_replaced` is called for each log that is replaced. `rate` returns the current limit of all
    moves in bytes per second; `at_once` moves run at the same time.
    """

    def __init__(
        self,
        partitions: Partitions,
        flusher: Flusher,
        clock: Clock,
        on_replaced: Callable[[PartitionLog], None],
        rate: Callable[[], int] = lambda: LONG_MAX,
        at_once: int | None = None,
    ) -> None:
        self._partitions, self._store = partitions, partitions.store
        self._flusher, self._clock, self._on_replaced = flusher, clock, on_replaced
        self._rate, self._at_once = rate, at_once or len(self._store.dirs)
        self._throttle = Throttle(clock.monotonic_ms)
        self._wanted = asyncio.Event()
        self._in_progress: set[TopicPartition] = set()

    def start(self, topic_partition: TopicPartition, path: Path) -> None:
        """Start moving a partition to the directory; its current one cancels a move."""
        if not any(log_dir.path == path for log_dir in self._store.online):
            raise LogDirNotFound(f"{path} is not an online log directory of this broker")
        partition = self._partitions.get(*topic_partition)
        if not may_move(topic_partition):
            raise TopicNameTooLong("The topic name is too long.")
        if partition.log.log_dir.path != path and self._store.is_cordoned(path):
            raise LogDirCordoned(f"{path} is in cordoned.log.dirs")
        now_ms = self._clock.now_ms()
        future = self._store.future_logs.get(topic_partition)
        if future is not None:
            if future.log_dir.path == path:
                return
            self._store.delete(topic_partition, future=True)
        if partition.log.log_dir.path != path:
            self._store.create(topic_partition, partition.topic_id, now_ms, path=path, future=True)
            self._wanted.set()

    async def run(self) -> None:
        """Run moves until cancelled, starting with those that a restart interrupted."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._at_once):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            found = self._next()
            if found is None:
                await self._change()
                continue
            topic_partition = found[0].topic_partition
            self._in_progress.add(topic_partition)
            try:
                await self._move(*found)
            finally:
                self._in_progress.discard(topic_partition)

    def _next(self) -> tuple[Partition, PartitionLog] | None:
        for topic_partition, future in self._store.future_logs.items():
            partition = self._partitions.find(*topic_partition)
            if partition is not None and topic_partition not in self._in_progress:
                return partition, future
        return None

    async def _change(self) -> None:
        """Wait for a new move, or for the partition of a move that a restart interrupted."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CHECK_S if self._store.future_logs else None):
                await self._wanted.wait()
        self._wanted.clear()

    async def _move(self, partition: Partition, future: PartitionLog) -> None:
        topic_partition, flushes, unsynced_bytes = partition.topic_partition, 0, 0
        try:
            while self._store.future_logs.get(topic_partition) is future:
                if wait_ms := self._throttle.delay_ms(self._rate(), THROTTLE_CHECK_MS):
                    await asyncio.sleep(wait_ms / 1000)
                elif copied := _copy_some(partition.log, future, self._clock.now_ms()):
                    unsynced_bytes += copied
                    self._throttle.record(copied, self._rate())
                    await asyncio.sleep(0)  # lets requests run first
                elif future.recovery_point < future.end_offset and (
                    flushes < FLUSHES_OFF_LOOP or unsynced_bytes > MOST_ON_LOOP_BYTES
                ):
                    # The little that is appended meanwhile is copied next.
                    flushes, unsynced_bytes = flushes + 1, 0
                    await asyncio.wrap_future(self._flusher.request(future))
                else:
                    self._take_over(partition, future)
        except (StorageError, KafkaError) as error:
            logger.error(
                "%s cannot be moved to %s: %s", topic_partition, future.log_dir.path, error
            )
            self._give_up(partition.log, future)

    def _give_up(self, log: PartitionLog, future: PartitionLog) -> None:
        """Cancel one move, so that others go on. After a disk failure the future log stays: it may
        be the better copy when the broker restarts.
        """
        topic_partition = future.topic_partition
        if self._store.future_logs.get(topic_partition) is not future:
            return
        if log.log_dir.failure is not None or future.log_dir.failure is not None:
            del self._store.future_logs[topic_partition]
        else:
            with suppress(StorageError):  # the directory goes offline, and that is logged
                self._store.delete(topic_partition, future=True)

    def _take_over(self, partition: Partition, future: PartitionLog) -> None:
        old, topic_partition = partition.log, partition.topic_partition
        future.set_high_watermark(old.high_watermark)
        future.maybe_increment_log_start(old.log_start_offset)
        # The copy has the same gaps. If the broker dies, another recovery has to find them.
        future.unverified_gaps = old.unverified_gaps
        future.recovery_point = old.verified(future.recovery_point)
        self._on_replaced(old)
        partition.replace_log(self._store.promote_future(topic_partition))
        logger.info("%s was moved to %s", topic_partition, future.log_dir.path)


def _copy_some(log: PartitionLog, future: PartitionLog, now_ms: int) -> int:
    """Copy the next batches; returns the number of bytes, 0 if the copy has caught up."""
    if future.end_offset < log.log_start_offset:
        truncate_fully_and_start_at(future, log.log_start_offset, now_ms)
    if future.end_offset > log.end_offset:
        truncate_to(future, log.end_offset)
    batches = log.read(future.end_offset, CHUNK_BYTES, up_to=log.end_offset)
    if batches is None:
        return 0
    append_as_follower(future, batches.read(), now_ms)
    return len(batches)
