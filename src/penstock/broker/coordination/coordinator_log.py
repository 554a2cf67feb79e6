"""The log of an internal topic's partition, as its coordinator uses it."""

from collections.abc import Callable

from penstock.broker.parked import Parked
from penstock.broker.waiters import Waiters
from penstock.coordinator.errors import (
    CoordinatorNotAvailable,
    CoordinatorRecordTooLarge,
    NotCoordinator,
)
from penstock.coordinator.storage import ProducerIdAndEpoch, RawRecord
from penstock.errors import KafkaError, StorageError
from penstock.log.producer_state import InvalidProducerEpoch
from penstock.record.batch import read_header
from penstock.record.build import build_batch, numbered
from penstock.record.compression import Codec
from penstock.replication.errors import NotLeader
from penstock.replication.partition import Partition
from penstock.types import Buffer

SLICE_BYTES = 1 << 16
"""Bytes loaded per loop turn: some hundred records, a few milliseconds."""


PATIENCE_MS = 5_000


class PartitionCoordinatorLog:
    """Appends as the partition's leader, with acks=all."""

    def __init__(self, partition: Partition, waiters: Waiters, codec: Codec) -> None:
        self._partition, self._waiters = partition, waiters
        self._codec, self._tenure = codec, partition.tenure
        self._flush_to = 0
        """`flush.messages` requires a flush up to this offset."""

    @property
    def start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._partition.log.end_offset

    def append(
        self, records: list[RawRecord], now_ms: int, producer: ProducerIdAndEpoch | None = None
    ) -> int:
        partition = self._partition
        batch = build_batch(
            numbered(records, now_ms),
            codec=self._codec,
            producer_id=-1 if producer is None else producer.id,
            producer_epoch=-1 if producer is None else producer.epoch,
            transactional=producer is not None,
        )
        if len(batch) > partition.rules.max_message_bytes:
            raise CoordinatorRecordTooLarge(f"{len(batch)} bytes for {partition.topic_partition}")
        try:
            appended = partition.append(
                batch, read_header(batch), -1, now_ms, from_client=producer is None
            )
        except InvalidProducerEpoch:
            raise
        except (NotLeader, StorageError) as error:
            raise NotCoordinator(str(error)) from error
        except KafkaError as error:
            raise CoordinatorNotAvailable(str(error)) from error
        end = appended.last_offset + 1
        if appended.flush_due:
            self._flush_to = end
        return end

    def is_committed(self, offset: int) -> bool:
        log = self._partition.log
        return (
            log.high_watermark >= offset
            and log.recovery_point >= min(offset, self._flush_to)
            and self._partition.is_in_tenure(self._tenure)
        )

    def when_committed(self, offset: int, then: Callable[[], object]) -> None:
        if self.is_committed(offset):
            then()
            return

        def attempt() -> bool | None:
            return True if self.is_committed(offset) else None

        def done(committed: bool) -> None:  # noqa: FBT001  the waiter's result
            if committed:
                then()
            elif self._partition.is_in_tenure(self._tenure):
                self.when_committed(offset, then)

        keys = [self._partition.topic_partition]
        self._waiters.park(Parked(keys, PATIENCE_MS, attempt, lambda: False), done)

    def delete_before(self, offset: int) -> None:
        self._partition.log.maybe_increment_log_start(offset)
        self._waiters.changed(self._partition.topic_partition)  # followers adopt the new start

    def read(self, offset: int) -> Buffer:
        found = self._partition.log.read(offset, SLICE_BYTES, up_to=self.end_offset)
        return b"" if found is None else found.read()
