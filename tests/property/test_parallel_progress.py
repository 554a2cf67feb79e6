"""The parallel consumer's bookkeeping against a model: failures, rebalances and kills at random.

The machine is a consumer with several workers on one partition whose log has gaps. The model is a
set of finished offsets, and the set that the last acknowledged commit has.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from penstock.sdk.parallel.progress import PAGE, LaneProgress
from penstock.sdk.parallel.saved import (
    from_metadata,
    page_from_value,
    page_value,
    to_metadata,
)
from penstock.sdk.parallel.work import Order, Work, lane_of
from penstock.sdk.record import Record

Raw = Record[bytes, bytes]


class ParallelMachine(RuleBasedStateMachine):
    """Finished and committed records are not handled again, unfinished ones are never skipped, and
    lanes are handled in order.
    """

    @initialize(
        order=st.sampled_from(Order),
        first=st.sampled_from([0, 5, PAGE - 4, 3 * PAGE - 2]),
        gaps=st.sets(st.integers(0, 40)),
    )
    def begin(self, order: Order, first: int, gaps: set[int]) -> None:
        self.order, self.first = order, first
        self.log = [first + each for each in range(40) if each not in gaps]
        self.finished: set[int] = set()
        self.saved: tuple[int | None, str] = (None, "")
        self.saved_finished: set[int] = set()
        self.handled: dict[int, int] = {}
        self.join()

    def join(self) -> None:
        base, metadata = self.saved
        self.progress = LaneProgress(base, from_metadata(metadata) if metadata else ())
        self.work: Work[Raw] = Work(lane_of(self.order))
        self.running: list[Raw] = []
        self.later: list[Raw] = []
        """Failed or nacked records that wait for their next attempt, at the head of their lanes."""
        begin = self.first if base is None else base
        self.begun = begin
        self.unread = [each for each in self.log if each >= begin]
        self.finished = set(self.saved_finished)

    def record(self, offset: int) -> Raw:
        key = None if offset % 5 == 0 else b"k%d" % (offset % 3)
        return Record.make("t", 0, offset, key, b"")

    @rule(count=st.integers(1, 10))
    def receive(self, count: int) -> None:
        taken, self.unread = self.unread[:count], self.unread[count:]
        for offset in taken:
            is_new = self.progress.start(offset)
            assert is_new == (offset not in self.finished), offset
            if is_new:
                self.work.add(self.record(offset))

    @rule()
    def dispatch(self) -> None:
        record = self.work.next()
        if record is None:
            assert self.running or self.later or not self.work.waiting
            return
        if self.lane(record) is not None:
            assert self.lane(record) not in [self.lane(each) for each in self.in_hand]
        assert record.offset not in self.finished
        before = [
            each
            for each in self.log
            if each < record.offset
            and each not in self.finished
            and self.lane(record) is not None
            and self.lane(self.record(each)) == self.lane(record)
        ]
        assert not before, "an earlier record of the lane is not finished"
        self.running.append(record)

    @property
    def in_hand(self) -> list[Raw]:
        return [*self.running, *self.later]

    def lane(self, record: Raw) -> object:
        return lane_of(self.order)(record)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        record = data.draw(st.sampled_from(self.running))
        self.running.remove(record)
        self.work.done(record)
        self.progress.finish(record.offset)
        self.finished.add(record.offset)
        self.handled[record.offset] = self.handled.get(record.offset, 0) + 1

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        record = data.draw(st.sampled_from(self.running))
        self.running.remove(record)
        self.later.append(record)

    @precondition(lambda self: self.later)
    @rule(data=st.data())
    def try_again(self, data: st.DataObject) -> None:
        record = data.draw(st.sampled_from(self.later))
        self.later.remove(record)
        assert not self.progress.is_finished(record.offset)
        self.running.append(record)

    @rule(most=st.integers(0, 5))
    def shed(self, most: int) -> None:
        """The buffer is full: records beyond the partition's share are dropped and read again."""
        before = self.work.waiting + self.work.in_progress
        start = self.work.shed(("t", 0), most)
        if start is None:
            return
        left = self.work.waiting + self.work.in_progress
        assert before > left >= min(before, most)
        self.progress.give_back(start)
        assert not self.progress.is_behind(start)
        self.unread = [each for each in self.log if each >= start]

    @rule(in_topic=st.booleans())
    def commit(self, in_topic: bool) -> None:
        base = self.progress.base
        if base is None:
            return
        pages = list(self.progress.pages())
        if in_topic:
            pages = [page_from_value(each.number, page_value(each)) for each in pages]
        text = to_metadata(pages)
        assert text is not None
        self.saved, self.saved_finished = (base, text), set(self.finished)

    @rule()
    def kill(self) -> None:
        """A kill, or a rebalance whose drain timed out: another consumer continues from the last
        commit.
        """
        self.join()

    @rule()
    def rebalance(self) -> None:
        """A rebalance after a drain: running records finish and are committed; another consumer
        continues, and makes the next attempts too.
        """
        self.work.drop([("t", 0)])
        for record in self.later:
            self.work.done(record)
        self.later = []
        for record in self.running:
            self.work.done(record)
            self.progress.finish(record.offset)
            self.finished.add(record.offset)
        self.running = []
        assert (self.work.waiting, self.work.in_progress) == (0, 0)
        self.commit(in_topic=False)
        self.join()

    @invariant()
    def all_that_was_received_is_somewhere(self) -> None:
        assert self.work.in_progress == len(self.in_hand)
        received = [each for each in self.log if each not in self.unread]
        unfinished = sum(each not in self.finished and each >= self.begun for each in received)
        assert self.work.waiting + self.work.in_progress == unfinished

    @invariant()
    def the_base_is_the_first_unfinished(self) -> None:
        base = self.progress.base
        if base is None:
            return
        received = [each for each in self.log if each not in self.unread]
        unfinished = [each for each in received if each not in self.finished]
        if unfinished:
            assert base <= unfinished[0]
            assert not [each for each in self.log if base <= each < unfinished[0]]
        assert all(self.progress.is_finished(each) for each in self.finished)
        assert not any(self.progress.is_finished(each) for each in unfinished)


def test_the_progress_agrees_with_the_model() -> None:
    run_state_machine_as_test(
        ParallelMachine, settings=settings(max_examples=100, stateful_step_count=40, deadline=None)
    )
