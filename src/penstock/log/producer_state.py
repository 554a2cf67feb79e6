"""Per-partition producer state: which batches are new, repeated, out of order or fenced.

This is what makes retries harmless (KIP-98): each producer numbers its batches per partition,
and the log takes every number once. It also knows the open transactions, hence the last stable
offset. Pure: it reads no file and no clock.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from penstock.errors import ErrorCode, KafkaError
from penstock.log.producer_entry import SEQUENCE_MODULUS, BatchMetadata, ProducerEntry
from penstock.log.producer_snapshot import ENTRY_BYTES, decode_snapshot, encode_snapshot
from penstock.record.batch import BatchHeader

LAST_EPOCH: Final = 2**15 - 1


class InvalidProducerEpoch(KafkaError):
    """The producer is fenced: a newer instance of it has written."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class OutOfOrderSequence(KafkaError):
    """A batch is missing before this one."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class WriteOutsideTransaction(KafkaError):
    """A producer with an open transaction wrote outside of it."""

    code = ErrorCode.INVALID_TXN_STATE


class CoordinatorFenced(KafkaError):
    """A marker of a former transaction coordinator."""

    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


@dataclass(frozen=True)
class CompletedTxn:
    """A transaction that a marker ended, with the fields of the aborted-transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    committed: bool
    last_stable_offset: int


class ProducerState:
    """All producers of one partition, up to `map_end_offset`.

    The leader calls `check` (`check_marker`) before it appends; leader, follower and recovery call
    `append` (`complete_transaction`) after. A follower never checks: the leader decided.

    To truncate, restore the newest snapshot at or before the offset and append what follows it:
    what was dropped since, such as a sixth batch, can only come from the log.
    """

    def __init__(self, map_end_offset: int = 0) -> None:
        self.producers: dict[int, ProducerEntry] = {}
        self.map_end_offset = map_end_offset
        self.first_unstable_offset: int | None = None
        """Smallest first offset of open or not yet replicated transactions; the last stable
        offset is the smaller of this and the high watermark."""
        self._ongoing: dict[int, int] = {}  # first offset -> producer id, ascending
        self._unreplicated: deque[tuple[int, int]] = deque()
        """First offset and marker's offset of ended transactions, both ascending: one that began
        after another, and ended before it, never holds the last stable offset alone. A replay may
        have a million of them.
        """

    def check(self, header: BatchHeader, *, from_client: bool) -> BatchMetadata | None:
        """The batch that this one repeats; None for a new one. Raises if it must not be appended.

        The transaction coordinator's own appends carry epochs but no sequences of the client:
        they are not `from_client`.
        """
        entry = self.producers.get(header.producer_id)
        if entry is None:
            # Never seen, or expired, or its records are gone: any sequence may begin (KIP-360).
            return None
        if header.producer_epoch == entry.producer_epoch:
            if from_client:
                duplicate = entry.duplicate_of(header)
                if duplicate is not None:
                    return duplicate
                if header.base_sequence != (entry.last_sequence + 1) % SEQUENCE_MODULUS:
                    raise OutOfOrderSequence(
                        f"producer {header.producer_id} sent sequence {header.base_sequence} "
                        f"after {entry.last_sequence}"
                    )
        elif header.producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(_stale_epoch(entry, header.producer_epoch))
        elif from_client and header.base_sequence != 0:
            raise OutOfOrderSequence(
                f"producer {header.producer_id} began epoch {header.producer_epoch} "
                f"with sequence {header.base_sequence}"
            )
        if entry.current_txn_first_offset is not None and not header.is_transactional:
            raise WriteOutsideTransaction(
                f"producer {header.producer_id} has a transaction open since offset "
                f"{entry.current_txn_first_offset} and wrote outside of it"
            )
        return None

    def check_marker(self, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> None:
        """Refuse a marker of a fenced producer or of a fenced coordinator."""
        entry = self.producers.get(producer_id)
        if entry is None:
            return
        if producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(_stale_epoch(entry, producer_epoch))
        if coordinator_epoch < entry.coordinator_epoch:
            raise CoordinatorFenced(
                f"a marker for producer {producer_id} has coordinator epoch {coordinator_epoch}, "
                f"and one of {entry.coordinator_epoch} was seen"
            )

    def check_next_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Refuse a marker that would end the transaction after its own (KIP-890).

        Where every transaction has an epoch of its own, its marker has the next one. A marker that
        arrives again is accepted, and so is one in the last epoch, which has no next.
        """
        entry = self.producers.get(producer_id)
        if entry is None or producer_epoch != entry.producer_epoch or producer_epoch == LAST_EPOCH:
            return
        if entry.current_txn_first_offset is not None:
            raise InvalidProducerEpoch(
                f"a marker of epoch {producer_epoch} would end the transaction that producer "
                f"{producer_id} has begun in it"
            )

    def append(self, header: BatchHeader, appended_ms: int | None = None) -> None:
        """Note a batch of data that is now in the log, with its offset.

        `appended_ms` is None for a batch found on the disk: the time of its append is unknown.
        """
        self.map_end_offset = header.next_offset
        producer_id = header.producer_id
        if producer_id < 0 or header.is_control:
            return
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = ProducerEntry(producer_id, header.producer_epoch)
            self.producers[producer_id] = entry
        entry.remember(header, appended_ms)
        if entry.current_txn_first_offset is None and header.is_transactional:
            entry.current_txn_first_offset = header.base_offset
            self._ongoing[header.base_offset] = producer_id
            self._find_first_unstable()

    def complete_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        committed: bool,
        marker_offset: int,
        timestamp: int,
        appended_ms: int | None = None,
    ) -> CompletedTxn | None:
        """Note a marker that is now in the log; None if it ended no transaction."""
        self.map_end_offset = marker_offset + 1
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = ProducerEntry(producer_id, producer_epoch)
            self.producers[producer_id] = entry
        first_offset = entry.current_txn_first_offset
        entry.begin_epoch(producer_epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        entry.appended_ms = appended_ms
        entry.current_txn_first_offset = None
        if first_offset is None:
            return None
        del self._ongoing[first_offset]
        while self._unreplicated and self._unreplicated[-1][0] > first_offset:
            self._unreplicated.pop()
        self._unreplicated.append((first_offset, marker_offset))
        self._find_first_unstable()
        return CompletedTxn(
            producer_id,
            first_offset,
            marker_offset,
            committed,
            last_stable_offset=next(iter(self._ongoing), marker_offset + 1),
        )

    def replicated_to(self, high_watermark: int) -> None:
        """Forget completed transactions below the high watermark: the last stable offset moves."""
        if not self._unreplicated:
            return
        while self._unreplicated and self._unreplicated[0][1] < high_watermark:
            self._unreplicated.popleft()
        self._find_first_unstable()

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that have not written for `expiration_ms`, except in a transaction."""
        expired = [
            producer_id
            for producer_id, entry in self.producers.items()
            if entry.current_txn_first_offset is None
            and now_ms - entry.idle_since_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]

    def copy_append_times(self, former: "ProducerState") -> None:
        """Take over the append times of `former`: the state before the log's truncation."""
        for producer_id, entry in self.producers.items():
            if producer_id in former.producers:
                entry.appended_ms = former.producers[producer_id].appended_ms

    def truncate_before(self, log_start_offset: int) -> None:
        """The log now begins at `log_start_offset`.

        Producers stay although their records are gone: they still send their next sequence.
        """
        self.replicated_to(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)

    @property
    def snapshot_bytes(self) -> int:
        """The approximate size of a snapshot."""
        return len(self.producers) * ENTRY_BYTES

    def snapshot(self) -> bytes:
        """The bytes of a `.snapshot` file, with each producer's newest batch, as in Kafka."""
        return encode_snapshot(self.producers.values())

    @classmethod
    def restore(
        cls, data: bytes, map_end_offset: int, what: str = "producer snapshot"
    ) -> "ProducerState":
        """The state that a snapshot at `map_end_offset` holds; `CorruptFile` if it is damaged."""
        state = cls(map_end_offset)
        for entry in decode_snapshot(data, what):
            state.producers[entry.producer_id] = entry
        state._ongoing = dict(
            sorted(
                (entry.current_txn_first_offset, entry.producer_id)
                for entry in state.producers.values()
                if entry.current_txn_first_offset is not None
            )
        )
        state._find_first_unstable()
        return state

    def _find_first_unstable(self) -> None:
        first = next(iter(self._ongoing), None)
        if self._unreplicated:
            ended = self._unreplicated[0][0]
            first = ended if first is None else min(first, ended)
        self.first_unstable_offset = first


def _stale_epoch(entry: ProducerEntry, producer_epoch: int) -> str:
    return (
        f"producer {entry.producer_id} has epoch {producer_epoch}, "
        f"and epoch {entry.producer_epoch} has written"
    )
