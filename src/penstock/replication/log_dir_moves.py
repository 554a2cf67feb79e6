"""Replicas that move between the log directories of a broker (KIP-113).

A copy in the other directory follows the log until it has caught up, and then takes its place.
The partition is served all the while; only the last step, two renames, holds it up.
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
from penstock.log.naming import may_move
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogDirNotFound
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.replication.throttle import Throttle
from penstock.types import TopicPartition

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
"""Copied at a time: some milliseconds of the loop."""

REST_MS = 100
"""At most, until the rate is looked at again: it may have been altered."""

LOOK_S = 1


class TopicNameTooLong(KafkaError):
    """Kafka's refusal as well (KAFKA-4893)."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class LogDirMoves:
    """Starts moves and carries them out in `run`. Belongs to the event loop.

    `on_replaced` hears of each log that a copy has replaced. `rate` is the limit of bytes a second
    for all moves, as it is now; `at_once` are carried out at the same time.
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
        self._under_way: set[TopicPartition] = set()

    def start(self, where: TopicPartition, path: Path) -> None:
        """Move a partition to the directory; to its own one, end a move that is under way."""
        if not any(log_dir.path == path for log_dir in self._store.online):
            raise LogDirNotFound(f"{path} is no log directory of this broker, or it is offline")
        partition = self._partitions.get(*where)
        if not may_move(where):
            raise TopicNameTooLong("The topic name is too long.")
        now_ms = self._clock.now_ms()
        future = self._store.future_logs.get(where)
        if future is not None:
            if future.log_dir.path == path:
                return
            self._store.delete(where, future=True)
        if partition.log.log_dir.path != path:
            self._store.create(where, partition.topic_id, now_ms, path=path, future=True)
            self._wanted.set()

    async def run(self) -> None:
        """Carry moves out until cancelled; those that a former broker began first."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._at_once):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            found = self._next()
            if found is None:
                await self._change()
                continue
            where = found[0].topic_partition
            self._under_way.add(where)
            try:
                await self._move(*found)
            finally:
                self._under_way.discard(where)

    def _next(self) -> tuple[Partition, PartitionLog] | None:
        for where, future in self._store.future_logs.items():
            partition = self._partitions.find(*where)
            if partition is not None and where not in self._under_way:
                return partition, future
        return None

    async def _change(self) -> None:
        """Wait for a move to start, or for the controller to tell of a partition that is known
        from a former broker's move alone.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S if self._store.future_logs else None):
                await self._wanted.wait()
        self._wanted.clear()

    async def _move(self, partition: Partition, future: PartitionLog) -> None:
        where = partition.topic_partition
        try:
            while self._store.future_logs.get(where) is future:
                if rest_ms := self._throttle.owes_ms(self._rate(), REST_MS):
                    await asyncio.sleep(rest_ms / 1000)
                elif copied := _copy_some(partition.log, future, self._clock.now_ms()):
                    self._throttle.passed(copied, self._rate())
                    await asyncio.sleep(0)  # requests go first
                elif future.recovery_point < future.end_offset:
                    # Off the loop; whatever is appended meanwhile is little, and comes next.
                    await asyncio.wrap_future(self._flusher.request(future))
                else:
                    self._take_over(partition, future)
        except (StorageError, KafkaError) as error:
            logger.error("%s could not be moved to %s: %s", where, future.log_dir.path, error)
            self._give_up(partition.log, future)

    def _give_up(self, log: PartitionLog, future: PartitionLog) -> None:
        """End one move, so that others go on. What a failed disk has left of it, stays: the copy
        may be the better one when the broker starts again.
        """
        where = future.topic_partition
        if self._store.future_logs.get(where) is not future:
            return
        if log.log_dir.failure is not None or future.log_dir.failure is not None:
            del self._store.future_logs[where]
        else:
            with suppress(StorageError):  # its directory goes offline, and says so
                self._store.delete(where, future=True)

    def _take_over(self, partition: Partition, future: PartitionLog) -> None:
        old, where = partition.log, partition.topic_partition
        future.set_high_watermark(old.high_watermark)
        future.maybe_increment_log_start(old.log_start_offset)
        self._on_replaced(old)
        partition.replace_log(self._store.promote_future(where))
        logger.info("%s has moved to %s", where, future.log_dir.path)


def _copy_some(log: PartitionLog, future: PartitionLog, now_ms: int) -> int:
    """Copy the next batches; how many bytes, none where the copy has caught up."""
    if future.end_offset < log.log_start_offset:
        future.truncate_fully_and_start_at(log.log_start_offset, now_ms)
    if future.end_offset > log.end_offset:
        future.truncate_to(log.end_offset)
    batches = log.read(future.end_offset, CHUNK_BYTES, up_to=log.end_offset)
    if batches is None:
        return 0
    future.append_as_follower(batches.read(), now_ms)
    return len(batches)
