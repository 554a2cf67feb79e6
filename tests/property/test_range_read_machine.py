"""Any order of answers, failures and readers: each record is handed out once, and intact."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.spark.source.range_read import (
    Lease,
    RangeDone,
    RangeRead,
    ReceiveInto,
    SendFetch,
    WaitForReader,
)

END = 60


class RangeReadMachine(RuleBasedStateMachine):
    """Plays broker and readers; `content` is what was last received into each buffer."""

    buffers = 3

    def __init__(self) -> None:
        super().__init__()
        self.read = RangeRead(0, END, self.buffers)
        self.content: dict[int, range] = {}
        self.in_use: dict[Lease, range] = {}
        self.handed_out: list[int] = []

    @precondition(lambda self: isinstance(self.read.step(), SendFetch))
    @rule(fails=st.booleans())
    def ask(self, fails: bool) -> None:
        assert self.read.step() == SendFetch(len(self.handed_out))
        if fails:
            self.read.failed()
        else:
            self.read.sent()

    @precondition(lambda self: isinstance(self.read.step(), ReceiveInto))
    @rule(size=st.integers(0, 20), fails=st.booleans())
    def receive(self, size: int, fails: bool) -> None:
        step = self.read.step()
        assert isinstance(step, ReceiveInto)
        # A failure may come after some bytes of the answer, and an empty answer has bytes too.
        position = len(self.handed_out)
        self.content[step.buffer] = range(position, position + size)
        if fails:
            self.read.failed()
        elif size == 0:
            self.read.empty()
        else:
            lease = self.read.received(position + size)
            self.in_use[lease] = range(position, position + size)
            self.handed_out += range(position, position + size)

    @precondition(lambda self: self.in_use)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(sorted(self.in_use, key=lambda each: each.start)))
        del self.in_use[lease]
        self.read.returned(lease)

    @rule()
    def look_at_what_is_to_be_done(self) -> None:
        assert self.read.step() == self.read.step()

    @invariant()
    def what_a_reader_holds_is_never_written_over(self) -> None:
        for lease, expected in self.in_use.items():
            assert self.content[lease.buffer] == expected
            assert lease.start == expected.start

    @invariant()
    def records_are_handed_out_once_and_in_order(self) -> None:
        assert self.handed_out == list(range(len(self.handed_out)))
        assert isinstance(self.read.step(), RangeDone) == (len(self.handed_out) >= END)

    @invariant()
    def it_waits_for_a_reader_only_where_all_buffers_are_in_use(self) -> None:
        if isinstance(self.read.step(), WaitForReader):
            assert len(self.in_use) == self.buffers


class WithOneBuffer(RangeReadMachine):
    """Each answer waits until the one before it is returned."""

    buffers = 1


TestRangeRead = RangeReadMachine.TestCase
TestWithOneBuffer = WithOneBuffer.TestCase
