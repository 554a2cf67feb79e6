"""A partition of an internal topic while this broker leads it."""

import logging
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from penstock.coordinator.pending_records import PendingRecords
from penstock.coordinator.result import CoordinatorShard, PendingReply
from penstock.coordinator.storage import CoordinatorLog, RawRecord, RecordFormat
from penstock.errors import ProtocolError
from penstock.loop import Handle

logger = logging.getLogger(__name__)

S = TypeVar("S", bound=CoordinatorShard[Any, Any])


class LedPartition(Generic[S]):
    """The log and state of a partition, its open transactions, and the replies that are pending.

    A `CoordinatorPlayback` for its own log. It belongs to the runtime.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        log: CoordinatorLog,
        shard: S,
        record_format: RecordFormat[Any],
    ) -> None:
        self._topic, self.partition, self.log = topic, partition, log
        self.shard, self._format = shard, record_format
        self.is_loaded = False
        self.unreadable_records = 0
        """Records that were skipped when the log was loaded."""
        self.pending_records = PendingRecords()
        self._decoded: tuple[int, tuple[Any, ...]] = (0, ())
        self.ended_while_loading: list[tuple[int, bool]] = []
        """Transactions whose markers were appended behind the part of the log being loaded."""
        self.pending_replies: WeakSet[PendingReply[Any]] = WeakSet()
        """Replies without a value, or with one that rests on uncommitted records. Held weakly:
        replies that were sent, and those of clients that disconnected, drop out by themselves."""
        self.timer: Handle | None = None
        self.timer_ms: int | None = None

    def replay(self, raw: RawRecord) -> None:
        record = self._format.decode(raw)
        self.pending_records.supersede(raw)
        if record is not None:
            self.shard.replay(record)

    def replay_pending(self, producer_id: int, raw: RawRecord) -> None:
        record = self._format.decode(raw)
        if record is not None:
            self.shard.replay_pending(record)
        self.pending_records.add(producer_id, raw)

    def decoded_pending_records(self) -> tuple[Any, ...]:
        """The records of open transactions; the same tuple until that changes."""
        changes, decoded = self._decoded
        if changes != self.pending_records.changes:
            found = map(self._format.decode, self.pending_records)
            decoded = tuple(each for each in found if each is not None)
            self._decoded = (self.pending_records.changes, decoded)
        return decoded

    def skip(self, offset: int, error: ProtocolError) -> None:
        self.unreadable_records += 1
        logger.error(
            "%s-%d: skipping the record at offset %d, which cannot be read: %s",
            self._topic,
            self.partition,
            offset,
            error,
        )

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        for raw in self.pending_records.end(producer_id, committed=committed):
            record = self._format.decode(raw)
            if record is not None:
                self.shard.replay(record)
