"""A share-partition: which records of a partition the members of a share group hold (KIP-932).

Pure: the time, the batches read from the log and the results of writes are arguments. A member's
decision takes effect once it is written. An expired lock or a lost connection takes effect at once:
it only makes records available again, and is written with the next write, or with its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from penstock.broker.share.errors import InvalidAcknowledgement, InvalidRecordState
from penstock.broker.share.in_flight import InFlightRun, InFlightRuns, Transition
from penstock.broker.share.key_order import KeyOrder
from penstock.coordinator.share.state import KEPT, RecordState, StateBatch, joined
from penstock.errors import KafkaError
from penstock.wire.enums import AcknowledgeType

NO_KEYS: Mapping[int, bytes] = MappingProxyType({})


class Acknowledgement(NamedTuple):
    """A member's decision about neighbouring records."""

    first: int
    last: int
    type: AcknowledgeType


class ShareLimits(NamedTuple):
    """The settings of a share group that apply to its records."""

    delivery_count: int = 5
    lock_ms: int = 30_000
    locks: int = 2000
    backoff_ms: int = 0
    """How long a record stays invisible after its first failed delivery; doubles with each."""
    backoff_max_ms: int = 0
    key_order: bool = False
    """Whether only the first unfinished record of each key is delivered."""
    dead_letters: bool = False
    """Whether a record that is given up becomes a dead letter."""

    def backoff_after(self, deliveries: int) -> int:
        return min(self.backoff_ms << max(deliveries - 1, 0), self.backoff_max_ms)


class Acquisition(NamedTuple):
    """A member's request for records. `is_strict`: at most `max_records`, even within a batch."""

    member: str
    max_records: int
    batch_size: int
    is_strict: bool = False


class FetchedBatch(NamedTuple):
    """A record batch of the log."""

    first: int
    last: int
    is_aborted: bool = False
    keys: Mapping[int, bytes] = NO_KEYS
    """Keys of its records by offset, as far as key order needs them."""


class AcquiredRecords(NamedTuple):
    """Records that a member has acquired, with their delivery count."""

    first: int
    last: int
    deliveries: int


class DueLetter(NamedTuple):
    """A record whose dead letter must be written now."""

    offset: int
    deliveries: int
    is_rejected: bool
    """Whether a member rejected it; otherwise it was delivered too often."""


class StateWrite(NamedTuple):
    """The changes to write."""

    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class SharePartition:
    """Records before `start_offset` are finished; none from `next_offset` on was delivered yet."""

    def __init__(
        self, start_offset: int, batches: Iterable[StateBatch] = (), *, is_new: bool = False
    ) -> None:
        self.start_offset = self.next_offset = start_offset
        self._in_flight = InFlightRuns()
        self._order: KeyOrder | None = None
        self._may_owe_letters = False
        self._queued: set[Transition] = set()
        self._writing: set[Transition] | None = None
        self._written_start = -1 if is_new else start_offset
        for first, last, state, count in batches:
            if last < start_offset:
                continue
            self._skip_to(first, RecordState.AVAILABLE)  # delivered, but undecided
            # Unfinished records, also in states of other versions, are delivered again.
            kept = RecordState(state) if state in KEPT else RecordState.AVAILABLE
            self._may_owe_letters |= kept is RecordState.ARCHIVING
            self._append(InFlightRun(self.next_offset, last, kept, count))
        self._advance()

    # --- queries

    @property
    def runs(self) -> Sequence[InFlightRun]:
        return self._in_flight.runs

    @property
    def in_flight(self) -> int:
        """The number of records between the start and the last delivered one."""
        return self.next_offset - self.start_offset

    @property
    def held(self) -> int:
        """The number of records that members hold."""
        return sum(run.size for run in self.runs if run.state is RecordState.ACQUIRED)

    def fetch_offset(self, limits: ShareLimits, now_ms: int) -> int | None:
        """The offset to read from next; None if the limit of records in flight is reached."""
        self._keep_order(limits)
        unknown = self.first_unknown_key
        if unknown is not None and unknown < self.next_offset:
            return unknown
        if self._order is None:
            for run in self.runs:
                if run.is_available and run.visible_ms <= now_ms:
                    return run.first
        else:
            for first, _, _ in self._ready(self.next_offset, now_ms):
                return first
        return self.next_offset if self.in_flight < limits.locks else None

    @property
    def first_unknown_key(self) -> int | None:
        """The offset from which `acquire` needs the records' keys; None if keys do not matter."""
        return None if self._order is None else self._order.known_to

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """When the next lock ends or the next record becomes visible."""
        due: int | None = None
        for run in self.runs:
            if run.next is not None:
                continue
            is_held = run.state is RecordState.ACQUIRED
            at_ms = run.deadline_ms if is_held else run.visible_ms
            is_coming = is_held or (run.is_available and at_ms > now_ms)
            if is_coming and (due is None or at_ms < due):
                due = at_ms
        return due

    def _keep_order(self, limits: ShareLimits) -> None:
        if not limits.key_order:
            self._order = None
        elif self._order is None:
            self._order = KeyOrder(self.start_offset)
        else:
            self._order.starts_at(self.start_offset)

    def _ready(self, last: int, now_ms: int) -> Iterator[tuple[int, int, InFlightRun]]:
        """Ranges of records up to `last` that can be delivered again, with their run."""
        order = self._order
        for run in self._in_flight.between(self.start_offset, last):
            if not run.is_available or run.visible_ms > now_ms:
                continue
            end = min(run.last, last)
            if order is None:
                yield run.first, end, run
                continue
            offsets = range(run.first, end + 1)
            firsts = [each for each in offsets if order.is_first(each, self._is_finished)]
            for first, to in _ranges(firsts):
                yield first, to, run

    def _is_finished(self, offset: int) -> bool:
        if not self.start_offset <= offset < self.next_offset:
            return offset < self.start_offset
        return self.runs[self._in_flight.at(offset)].state.is_final

    def is_acquired(self, offset: int) -> bool:
        """Whether a member holds the record."""
        if not self.start_offset <= offset < self.next_offset:
            return False
        return self.runs[self._in_flight.at(offset)].state is RecordState.ACQUIRED

    # --- members acquire records

    def acquire(
        self,
        wanted: Acquisition,
        found: Sequence[FetchedBatch],
        limits: ShareLimits,
        now_ms: int,
    ) -> list[AcquiredRecords]:
        """Acquire records of the batches that were read from `fetch_offset` on."""
        if not found:
            return []
        for batch in found:
            if batch.is_aborted:
                self._archive_available(batch)
        until_ms = now_ms + limits.lock_ms
        self._keep_order(limits)
        if self._order is not None:
            self._take_in(found, limits)
            for batch in found:
                self._order.learn(batch.last, batch.keys)
        again = self._acquire_again(wanted, found[-1].last, limits, now_ms)
        taken = sum(last - first + 1 for first, last, _ in again)
        is_full = taken >= wanted.max_records or self._is_isolated(again, limits)
        if not is_full and self._order is None:
            again += self._acquire_new(wanted, found, taken, limits, until_ms)
        self._advance()  # past batches of aborted transactions
        return again

    def _archive_available(self, aborted: FetchedBatch) -> None:
        """Archive aborted records that were released before the group began to read committed
        records.
        """
        for run in self._in_flight.between(aborted.first, aborted.last):
            if run.is_available:
                first, last = max(run.first, aborted.first), min(run.last, aborted.last)
                for part in self._in_flight.exactly(first, last):
                    part.become(RecordState.ARCHIVED, part.count)

    def _take_in(self, found: Sequence[FetchedBatch], limits: ShareLimits) -> None:
        """Add new records as available, not acquired: their keys decide which can be delivered."""
        for batch in found:
            first = max(batch.first, self.next_offset)
            last = min(batch.last, self.start_offset + limits.locks - 1)
            if first > last:
                continue
            self._skip_to(first, RecordState.ARCHIVED)
            if batch.is_aborted:
                self._skip_to(batch.last + 1, RecordState.ARCHIVED)
            else:
                self._append(InFlightRun(first, last, RecordState.AVAILABLE, 0))

    def _acquire_again(
        self, wanted: Acquisition, last: int, limits: ShareLimits, now_ms: int
    ) -> list[AcquiredRecords]:
        acquired: list[AcquiredRecords] = []
        left = wanted.max_records
        for first, to, run in self._ready(last, now_ms):
            if left <= 0:
                break
            portion = _portion(run, limits)
            if portion is not None and acquired:
                break  # records that failed before are delivered alone
            end = to if portion is None else min(to, first + portion - 1)
            if wanted.is_strict:
                end = min(end, first + left - 1)
            (part,) = self._in_flight.exactly(first, end)
            part.acquired_by(wanted.member, now_ms + limits.lock_ms)
            left -= part.size
            acquired.append(AcquiredRecords(part.first, part.last, part.count))
            if portion is not None:
                break
        return acquired

    def _is_isolated(self, acquired: list[AcquiredRecords], limits: ShareLimits) -> bool:
        return any(each.deliveries > _isolation_threshold(limits) for each in acquired)

    def _acquire_new(
        self,
        wanted: Acquisition,
        found: Sequence[FetchedBatch],
        taken: int,
        limits: ShareLimits,
        until_ms: int,
    ) -> list[AcquiredRecords]:
        left = min(wanted.max_records - taken, limits.locks - self.in_flight)
        ranges: list[tuple[int, int]] = []
        for batch in found:
            if batch.last < self.next_offset or left <= 0:
                continue
            first = max(batch.first, self.next_offset)
            last = min(batch.last, first + left - 1) if wanted.is_strict else batch.last
            if batch.is_aborted:
                self._skip_to(first, RecordState.ARCHIVED)
                self._skip_to(batch.last + 1, RecordState.ARCHIVED)
                continue
            if first > self.next_offset:
                self._skip_to(first, RecordState.ARCHIVED)
            follows = bool(ranges) and ranges[-1][1] + 1 == first
            # As in Kafka, `batch_size` does not divide what `max_records` limits.
            if follows and (
                wanted.is_strict or ranges[-1][1] - ranges[-1][0] + 1 < wanted.batch_size
            ):
                ranges[-1] = (ranges[-1][0], last)
                self.runs[-1].last = last
                self.runs[-1].batch = ranges[-1]
                self.next_offset = last + 1
            else:
                ranges.append((first, last))
                run = InFlightRun(first, last, RecordState.AVAILABLE, 0)
                run.acquired_by(wanted.member, until_ms)
                self._append(run)
            left -= last - first + 1
        return [AcquiredRecords(first, last, 1) for first, last in ranges]

    def _append(self, run: InFlightRun) -> None:
        self._in_flight.append(run)
        self.next_offset = run.last + 1

    def _skip_to(self, offset: int, state: RecordState) -> None:
        """Mark the offsets up to here: they have no record to deliver now."""
        if offset > self.next_offset:
            run = InFlightRun(self.next_offset, offset - 1, state, 0)
            run.dirty = state.is_final
            self._append(run)

    # --- members decide about records

    def acknowledge(
        self,
        member: str,
        acknowledgements: Iterable[Acknowledgement],
        limits: ShareLimits,
        now_ms: int,
    ) -> Transition:
        """Apply all acknowledgements or none. Records before the start are skipped: they are
        finished.
        """
        valid = [
            Acknowledgement(max(first, self.start_offset), last, kind)
            for first, last, kind in acknowledgements
            if last >= self.start_offset
        ]
        for each in valid:
            self._check_held(member, each)
        transition = Transition()
        self._may_owe_letters |= limits.dead_letters
        for first, last, kind in valid:
            for run in self._in_flight.exactly(first, last):
                if kind is AcknowledgeType.RENEW:
                    run.deadline_ms = now_ms + limits.lock_ms
                else:
                    run.next, run.transition = _decided(run, kind, limits), transition
                    run.visible_ms = now_ms + limits.backoff_after(run.count)
                    run.is_rejected = kind is AcknowledgeType.REJECT
                    self._queued.add(transition)
        if transition not in self._queued:
            transition.end()
        return transition

    def _check_held(self, member: str, each: Acknowledgement) -> None:
        if each.last >= self.next_offset:
            raise InvalidAcknowledgement(
                "Batch record not found. The first offset in request is past acquired records."
            )
        for run in self._in_flight.between(each.first, each.last):
            if not run.is_held:
                raise InvalidRecordState(
                    "The offset cannot be acknowledged. The offset is not acquired."
                )
            if run.owner != member:
                raise InvalidRecordState("Member is not the owner of batch record")

    # --- locks expire, connections close

    def expire(self, limits: ShareLimits, now_ms: int) -> int:
        """Release records whose lock has expired; returns their number."""
        late = [run for run in self.runs if run.is_held and run.deadline_ms <= now_ms]
        self._may_owe_letters |= limits.dead_letters
        count = sum(run.size for run in late)
        for run in late:
            run.become(*_decided(run, AcknowledgeType.RELEASE, limits))
            run.visible_ms = now_ms + limits.backoff_after(run.count)
        self._advance()
        return count

    def back_off(self, limits: ShareLimits, now_ms: int) -> None:
        """Delay records again that failed before this leader took over."""
        for run in self.runs:
            if run.is_available and run.count:
                run.visible_ms = now_ms + limits.backoff_after(run.count)

    def release(self, member: str) -> bool:
        """Release the records of a member whose session has ended. The delivery does not count:
        they may never have reached the application.
        """
        held = [run for run in self.runs if run.is_held and run.owner == member]
        for run in held:
            run.become(RecordState.AVAILABLE, max(run.count - 1, 0))
            run.visible_ms = 0
        return bool(held)

    def log_starts_at(self, offset: int) -> None:
        """Drop the records before `offset`: they were deleted."""
        if offset > self.start_offset:
            self._in_flight.drop_before(offset)
            self.start_offset = offset
            self.next_offset = max(self.next_offset, offset)
            self._advance()

    # --- dead letters

    def take_letters(self, limits: ShareLimits) -> list[DueLetter]:
        """The dead letters to write now, each once. Call it between writes.

        The ARCHIVING state is written first: from then on no member gets the record again, whatever
        happens. The next leader may write the letter again; `dead_letters` says why it stays a
        single one.
        """
        assert not self.is_writing, "a write under way may hold what is not written yet"
        due: list[DueLetter] = []
        if not self._may_owe_letters:
            return due
        self._may_owe_letters = any(run.is_to_be_archived for run in self.runs)
        for run in self.runs:
            if run.state is RecordState.ARCHIVING and not run.dirty and not run.is_sent:
                run.is_sent = True
                # A record that a former leader gave up before the limit was rejected.
                is_rejected = run.is_rejected or run.count < limits.delivery_count
                due += [
                    DueLetter(offset, run.count, is_rejected)
                    for offset in range(run.first, run.last + 1)
                ]
        return due

    def letter_written(self, offset: int) -> None:
        """Mark the record as finished."""
        if offset >= self.start_offset:
            for run in self._in_flight.exactly(offset, offset):
                run.become(RecordState.ARCHIVED, run.count)
            self._advance()

    # --- writes

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    def begin_write(self) -> StateWrite | None:
        """The state to write now; None if there is nothing to write, or a write is running.

        One write at a time: the start of a later write may depend on the decisions of an earlier
        one.
        """
        if self._writing is not None:
            return None
        if not self._queued and not self._needs_write():
            return None
        self._writing, self._queued = self._queued, set()
        written = [run for run in self.runs if run.dirty or run.transition in self._writing]
        for run in written:
            run.dirty = False
        start, complete = self._start_after_write()
        self._written_start = start
        batches = (run.as_batch() for run in written if run.last >= start)
        return StateWrite(start, complete, tuple(joined(batches)))

    def end_write(self, refused: KafkaError | None = None) -> set[Transition]:
        """End the write, successful or refused; returns the decisions in it."""
        assert self._writing is not None, "no write was begun"
        ended, self._writing = self._writing, None
        for run in self.runs:
            if run.transition in ended:
                if refused is None and run.next is not None:
                    run.become(*run.next)
                    run.dirty = False
                run.next = run.transition = None
        if refused is None:
            self._advance()
        else:
            self._written_start = -1  # unknown: the next write has everything again
            for run in self.runs:
                run.dirty = run.dirty or run.state is not RecordState.ACQUIRED
        for transition in ended:
            transition.end(refused)
        return ended

    def give_up(self, why: KafkaError) -> set[Transition]:
        """Refuse all unwritten decisions; returns them."""
        ended = self._queued | (self._writing or set())
        self._queued, self._writing = set(), None
        for transition in ended:
            transition.end(why)
        return ended

    def _needs_write(self) -> bool:
        return self._written_start != self.start_offset or any(run.dirty for run in self.runs)

    def _start_after_write(self) -> tuple[int, int]:
        """The start, and the number of finished records after it, once this write is done."""
        start, complete = self.start_offset, 0
        for run in self.runs:
            in_write = run.transition is not None and run.transition in (self._writing or ())
            state = run.next[0] if in_write and run.next is not None else run.state
            if state.is_final and run.first == start:
                start = run.last + 1
            elif state.is_final:
                complete += run.size
        return start, complete

    def _advance(self) -> None:
        """Move the start over finished records."""
        done = 0
        for run in self.runs:
            if not run.state.is_final:
                break
            self.start_offset, done = run.last + 1, done + 1
        del self._in_flight.runs[:done]


def _decided(
    run: InFlightRun, kind: AcknowledgeType, limits: ShareLimits
) -> tuple[RecordState, int]:
    match kind:
        case AcknowledgeType.ACCEPT:
            return RecordState.ACKNOWLEDGED, run.count
        case AcknowledgeType.RELEASE if run.count < limits.delivery_count:
            return RecordState.AVAILABLE, run.count
        case AcknowledgeType.GAP:
            return RecordState.ARCHIVED, run.count
        case _:
            given_up = RecordState.ARCHIVING if limits.dead_letters else RecordState.ARCHIVED
            return given_up, run.count


def _ranges(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending offsets as ranges."""
    found: list[tuple[int, int]] = []
    for each in offsets:
        if found and found[-1][1] + 1 == each:
            found[-1] = found[-1][0], each
        else:
            found.append((each, each))
    return found


def _isolation_threshold(limits: ShareLimits) -> int:
    return max(2, (limits.delivery_count + 1) // 2)


def _portion(run: InFlightRun, limits: ShareLimits) -> int | None:
    """How many records are delivered together; None: all.

    Records that failed often are delivered in ever smaller portions: one bad record among them must
    not take all others to the delivery limit (KAFKA-17541).
    """
    threshold = _isolation_threshold(limits)
    if run.count < threshold:
        return None
    if limits.delivery_count > 2 and run.count >= limits.delivery_count - 1:
        return 1
    first, last = run.batch
    return max(1, (last - first + 1) >> (run.count - threshold + 1))
