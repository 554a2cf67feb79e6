"""A share-partition against a model that tracks each record separately."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.broker.share.errors import InvalidAcknowledgement, InvalidRecordState
from penstock.broker.share.in_flight import Transition
from penstock.broker.share.share_partition import (
    Acknowledgement,
    Acquisition,
    FetchedBatch,
    ShareLimits,
    SharePartition,
)
from penstock.coordinator.share.state import RecordState, StateBatch, merged
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.enums import AcknowledgeType

MEMBERS = st.sampled_from("ab")
LIMITS = ShareLimits(delivery_count=3, lock_ms=100, locks=12)
BACKOFF = LIMITS._replace(backoff_ms=40, backoff_max_ms=60)
VARIANTS = (
    LIMITS,
    BACKOFF,
    LIMITS._replace(key_order=True),
    BACKOFF._replace(key_order=True, dead_letters=True),
    LIMITS._replace(dead_letters=True),
)
AVAILABLE, ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
ARCHIVING = RecordState.ARCHIVING


class LostError(KafkaError):
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class Known:
    """One record as the model sees it."""

    def __init__(self, state: RecordState = AVAILABLE, count: int = 0) -> None:
        self.state, self.count = state, count
        self.owner, self.until_ms = "", 0
        self.visible_ms = 0
        self.decided: tuple[Transition, RecordState] | None = None


class SharePartitionMachine(RuleBasedStateMachine):
    """No record is lost, none is delivered twice at a time or too often, and the written state is
    enough to continue after a crash.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.limits = LIMITS
        self.log: list[FetchedBatch] = []
        self.end = 0
        self.log_start = 0
        self.start = 0
        self.records: dict[int, Known] = {}
        self.stored: tuple[int, tuple[StateBatch, ...]] = (0, ())
        self.writing: Any = None
        self.acknowledged: set[int] = set()
        """Records whose completion was confirmed to a member."""
        self.decided: set[int] = set()
        """Records that were decided to be finished, and offsets without a record."""
        self.posted: list[int] = []
        """Records whose dead letters are being written."""
        self.letters: set[int] = set()
        """Dead letters; writing one again does not duplicate it, see `dead_letters.py`."""
        self.dead: set[int] = set()
        """Records that may become dead letters."""

    @initialize(limits=st.sampled_from(VARIANTS))
    def begin(self, limits: ShareLimits) -> None:
        self.partition, self.limits = SharePartition(0), limits
        self.produce([(2, 0, False), (3, 0, False), (2, 1, True)] * 2)

    @rule(
        sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2), st.booleans()), max_size=3)
    )
    def produce(self, sizes: list[tuple[int, int, bool]]) -> None:
        """Batches, some after a gap, some aborted."""
        for size, gap, aborted in sizes:
            first = self.end + gap
            keys = {o: b"%d" % (o % 3) for o in range(first, first + size) if o % 4}
            is_aborted = aborted and size % 2 == 0
            self.log.append(FetchedBatch(first, first + size - 1, is_aborted, keys))
            self.end = first + size

    def key(self, offset: int) -> bytes | None:
        return next((b.keys.get(offset) for b in self.log if b.first <= offset <= b.last), None)

    def waits(self, offset: int) -> bool:
        """Whether the record waits for an unfinished one with the same key."""
        key = self.key(offset) if self.limits.key_order else None
        return key is not None and any(
            o < offset and not r.state.is_final and self.key(o) == key
            for o, r in self.records.items()
        )

    def ready(self) -> list[int]:
        """Records that can be delivered again."""
        return [
            offset
            for offset, record in self.records.items()
            if record.state is AVAILABLE
            and not record.decided
            and record.visible_ms <= self.now_ms
            and not self.waits(offset)
        ]

    @rule(
        member=MEMBERS,
        most=st.integers(1, 8),
        size=st.integers(1, 4),
        strict=st.booleans(),
        batches=st.integers(1, 4),
    )
    def fetch(self, member: str, most: int, size: int, strict: bool, batches: int) -> None:
        at = self.partition.fetch_offset(self.limits, self.now_ms)
        in_flight = self.partition.in_flight
        waiting, is_ordered = self.ready(), self.limits.key_order
        unknown = self.partition.first_unknown_key
        if is_ordered and unknown is not None and unknown < self.partition.next_offset:
            waiting = [unknown]  # its key is unknown since the crash
        assert at == (min(waiting) if waiting else self.next if in_flight < LIMITS.locks else None)
        if at is None:
            return
        found = [each for each in self.log if each.last >= at][:batches]
        before = self.next
        taken = self.partition.acquire(
            Acquisition(member, most, size, strict), found, self.limits, self.now_ms
        )
        after = self.partition.next_offset
        aborted = {o for b in found if b.is_aborted for o in range(b.first, b.last + 1)}
        exists = {o for b in found for o in range(b.first, b.last + 1)}
        for offset in range(before, after):
            known = offset in exists - aborted
            self.records[offset] = Known(AVAILABLE if known else ARCHIVED)
            if not known:
                self.decided.add(offset)
        offsets = [o for each in taken for o in range(each.first, each.last + 1)]
        assert offsets == sorted(set(offsets))
        if is_ordered:
            can_be_had = exists & set(self.ready())
            assert taken or not can_be_had
            assert all(not self.waits(offset) for offset in offsets)
            new = [o for o in range(before, after) if self.records[o].state is AVAILABLE]
            assert all(offset < self.start + LIMITS.locks for offset in new)
        else:
            assert not found or taken or not (exists - aborted - self.records.keys())
        if strict:
            assert len(offsets) <= most
        for each in taken:
            for offset in range(each.first, each.last + 1):
                record = self.records[offset]
                assert record.state is AVAILABLE
                assert record.decided is None
                assert record.visible_ms <= self.now_ms
                assert offset not in self.acknowledged
                record.state, record.count = ACQUIRED, record.count + 1
                assert record.count == each.deliveries <= LIMITS.delivery_count
                record.owner, record.until_ms = member, self.now_ms + LIMITS.lock_ms
        if any(self.records[o].count >= LIMITS.delivery_count for o in offsets):
            assert len(offsets) == 1, "the last attempt of a record is alone"
        for offset in range(before, after):
            assert is_ordered or self.records[offset].state is not AVAILABLE
        self.advance()

    @property
    def next(self) -> int:
        return max(self.records, default=self.start - 1) + 1

    @precondition(lambda self: self.records)
    @rule(member=MEMBERS, data=st.data(), kind=st.sampled_from(AcknowledgeType))
    def acknowledge_anything(self, member: str, data: Any, kind: AcknowledgeType) -> None:
        first = data.draw(st.integers(max(self.start - 1, 0), self.next))
        last = data.draw(st.integers(first, min(first + 5, self.next)))
        self.acknowledge(member, first, last, kind)

    @precondition(lambda self: any(each.state is ACQUIRED for each in self.records.values()))
    @rule(data=st.data(), kind=st.sampled_from(AcknowledgeType))
    def acknowledge_own(self, data: Any, kind: AcknowledgeType) -> None:
        held = [o for o, each in self.records.items() if each.state is ACQUIRED]
        first = data.draw(st.sampled_from(held))
        owner, last = self.records[first].owner, first
        while last + 1 in held and self.records[last + 1].owner == owner:
            last += 1
        self.acknowledge(owner, first, data.draw(st.sampled_from((first, last))), kind)

    def acknowledge(self, member: str, first: int, last: int, kind: AcknowledgeType) -> None:
        theirs = [o for o in range(first, last + 1) if o >= self.start]
        is_valid = all(
            (known := self.records.get(o)) is not None
            and known.state is ACQUIRED
            and known.owner == member
            and known.decided is None
            for o in theirs
        )
        given = [Acknowledgement(first, last, kind)]
        if not is_valid:
            with pytest.raises((InvalidRecordState, InvalidAcknowledgement)):
                self.partition.acknowledge(member, given, self.limits, self.now_ms)
            return
        transition = self.partition.acknowledge(member, given, self.limits, self.now_ms)
        assert transition.is_done == (kind is AcknowledgeType.RENEW or not theirs)
        for offset in theirs:
            record = self.records[offset]
            if kind is AcknowledgeType.RENEW:
                record.until_ms = self.now_ms + LIMITS.lock_ms
            else:
                record.decided = (transition, self.outcome(record, kind))
                self.back_off(record)
                self.decides(offset, record.decided[1])

    def back_off(self, record: Known) -> None:
        waits_ms = (0, 40, 60, 60)[record.count] if self.limits.backoff_ms else 0
        record.visible_ms = self.now_ms + waits_ms

    def outcome(self, record: Known, kind: AcknowledgeType) -> RecordState:
        if kind is AcknowledgeType.ACCEPT:
            return ACKNOWLEDGED
        if kind is AcknowledgeType.RELEASE and record.count < LIMITS.delivery_count:
            return AVAILABLE
        is_letter = self.limits.dead_letters and kind is not AcknowledgeType.GAP
        return ARCHIVING if is_letter else ARCHIVED

    def decides(self, offset: int, state: RecordState) -> None:
        if state is ARCHIVING:
            # An earlier decision may be stored, although its write was reported as lost.
            if offset not in self.decided:
                self.dead.add(offset)
        elif state.is_final:
            self.decided.add(offset)
            self.dead.discard(offset)

    @rule()
    def begin_write(self) -> None:
        write = self.partition.begin_write()
        if self.writing is not None:
            assert write is None
        elif write is not None:
            decided = {r.decided[0] for r in self.records.values() if r.decided}
            self.writing = (write, decided)

    @precondition(lambda self: self.writing)
    @rule(arrives=st.booleans(), is_known=st.booleans())
    def end_write(self, arrives: bool, is_known: bool) -> None:
        (start, _, batches), decided = self.writing
        self.writing = None
        if arrives:
            self.stored = (start, merged(self.stored[1], batches, start))
        succeeded = arrives and is_known  # a response may be lost
        self.partition.end_write(None if succeeded else LostError("no response"))
        for offset, record in self.records.items():
            if record.decided and record.decided[0] in decided:
                if succeeded:
                    record.state, record.owner = record.decided[1], ""
                    self.acknowledged |= {offset} if record.state.is_final else set()
                record.decided = None
        assert all(each.is_done for each in decided)
        self.advance()

    @precondition(lambda self: not self.writing)
    @rule()
    def write(self) -> None:
        self.begin_write()
        if self.writing:
            self.end_write(arrives=True, is_known=True)

    @rule(ms=st.integers(1, 80))
    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.partition.expire(self.limits, self.now_ms)
        for offset, record in self.records.items():
            late = record.state is ACQUIRED and record.until_ms <= self.now_ms
            if late and not record.decided:
                record.state, record.owner = self.outcome(record, AcknowledgeType.RELEASE), ""
                self.back_off(record)
                self.decides(offset, record.state)
        self.advance()

    @rule()
    def post_letters(self) -> None:
        if self.partition.is_writing:
            return
        for offset, _, _ in self.partition.take_letters(self.limits):
            stored = (b.state for b in self.stored[1] if b.first <= offset <= b.last)
            assert next(stored, None) == ARCHIVING, (
                "it is written first that nobody gets the record again"
            )
            assert offset not in self.posted
            self.posted.append(offset)

    @precondition(lambda self: self.posted)
    @rule(is_told=st.booleans())
    def write_letter(self, is_told: bool) -> None:
        """Write a dead letter, or write it again because the answer was lost."""
        offset = self.posted[0]
        self.letters.add(offset)
        if not is_told:
            return
        self.posted.pop(0)
        self.decided.add(offset)
        self.partition.letter_written(offset)
        if offset in self.records:
            self.records[offset].state = ARCHIVED
        self.advance()

    @rule(member=MEMBERS, times=st.integers(1, LIMITS.delivery_count))
    def fail_again_and_again(self, member: str, times: int) -> None:
        for _ in range(times):
            self.wait(LIMITS.lock_ms)
            self.fetch(member, 1, 1, True, 1)

    @rule(member=MEMBERS)
    def disconnect(self, member: str) -> None:
        self.partition.release(member)
        for record in self.records.values():
            if record.state is ACQUIRED and record.owner == member and not record.decided:
                record.state, record.owner, record.count = AVAILABLE, "", record.count - 1
                record.visible_ms = 0

    @precondition(lambda self: self.start > self.log_start)
    @rule(data=st.data())
    def delete_records(self, data: Any) -> None:
        self.log_start = data.draw(st.integers(self.log_start, min(self.end, self.log_start + 3)))
        self.log = [each for each in self.log if each.last >= self.log_start]
        self.decided |= set(range(self.log_start))
        self.partition.log_starts_at(self.log_start)
        if self.log_start > self.start:
            self.start = self.log_start
            self.records = {o: r for o, r in self.records.items() if o >= self.start}
            self.advance()

    @rule(limits=st.sampled_from(VARIANTS))
    def alter_settings(self, limits: ShareLimits) -> None:
        self.limits = limits

    @precondition(lambda self: self.stored != (0, ()))
    @rule()
    def crash(self) -> None:
        """Another leader continues from the stored state: finished records stay finished."""
        start, batches = self.stored
        self.writing, self.posted = None, []
        self.partition = SharePartition(start, batches)
        self.partition.back_off(self.limits, self.now_ms)
        self.partition.log_starts_at(self.log_start)
        by_offset = {o: b for b in batches for o in range(b.first, b.last + 1)}
        end = max(by_offset, default=start - 1)
        self.start = max(start, self.log_start)
        self.records = {}
        for offset in range(self.start, end + 1):
            kept = by_offset.get(offset)
            state = AVAILABLE if kept is None else RecordState(kept.state)
            self.dead |= {offset} if state is ARCHIVING else set()
            record = Known(state, 0 if kept is None else kept.deliveries)
            self.records[offset] = record
            self.back_off(record)
        self.advance()

    def advance(self) -> None:
        """Only finished records before the start are forgotten."""
        while self.start in self.records and self.records[self.start].state.is_final:
            del self.records[self.start]
            self.start += 1

    @invariant()
    def agrees(self) -> None:
        partition = self.partition
        assert partition.start_offset == self.start
        assert partition.next_offset == max(self.next, self.start)
        shown = {
            offset: (run.state, run.count, run.owner, run.next is not None)
            for run in partition.runs
            for offset in range(run.first, run.last + 1)
        }
        expected = {
            offset: (known.state, known.count, known.owner, known.decided is not None)
            for offset, known in self.records.items()
        }
        assert shown == expected
        locks = {
            offset: run.deadline_ms
            for run in partition.runs
            if run.state is ACQUIRED
            for offset in range(run.first, run.last + 1)
        }
        assert locks == {o: r.until_ms for o, r in self.records.items() if r.state is ACQUIRED}
        due = [r.until_ms for r in self.records.values() if r.state is ACQUIRED and not r.decided]
        due += [
            record.visible_ms
            for record in self.records.values()
            if record.state is AVAILABLE and record.visible_ms > self.now_ms
        ]
        assert partition.next_deadline_ms(self.now_ms) == min(due, default=None)

    @invariant()
    def acknowledgements_survive(self) -> None:
        """Every record confirmed to a member as finished is stored as such: no crash brings it
        back.
        """
        start, batches = self.stored
        finished = {
            o for b in batches if RecordState(b.state).is_final for o in range(b.first, b.last + 1)
        }
        assert all(o < start or o in finished for o in self.acknowledged)
        assert all(o in self.decided for o in range(start))
        assert finished <= self.decided
        unfinished = [b for b in batches if not RecordState(b.state).is_final]
        assert all(
            b.deliveries < LIMITS.delivery_count for b in unfinished if b.state == AVAILABLE
        ), "one more is left"

    @invariant()
    def dead_letters_are_complete(self) -> None:
        """A rejected record is finished only if its dead letter is written, and a record that
        another member has, or had and accepted, has no dead letter.
        """
        start, batches = self.stored
        states = {o: RecordState(b.state) for b in batches for o in range(b.first, b.last + 1)}
        for offset in self.dead - set(range(self.log_start)):
            state = ARCHIVED if offset < start else states.get(offset, AVAILABLE)
            assert state is not ARCHIVED or offset in self.letters
        assert all(states.get(o, ARCHIVED) in {ARCHIVING, ARCHIVED} for o in self.letters)


TestSharePartition = SharePartitionMachine.TestCase
