"""Progress out of order, against a model that remembers every offset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.retry.history import UnreadableState
from penstock.retry.progress import CHUNK, Bitmaps, Outcome, Progress, StateKey
from penstock.types import Offset, Uuid


class ProgressMachine(RuleBasedStateMachine):
    """Reads, transactions that commit or abort, and restarts from the written state."""

    def __init__(self) -> None:
        super().__init__()
        self.progress = Progress(Offset(0), {})
        self.floor = 0
        self.state: dict[int, bytes] = {}
        self.end = 0
        self.records: set[int] = set()
        self.done: dict[int, Outcome] = {}

    @rule(gap=st.sampled_from([0, 1, 7, CHUNK, 3 * CHUNK]), count=st.integers(1, 40))
    def append(self, gap: int, count: int) -> None:
        """Compaction and control batches leave gaps."""
        first = self.end + gap
        for offset in range(first, first + count):
            self.records.add(offset)
            self.progress.waits(offset)
        self.end = first + count
        self.progress.read(Offset(self.end))

    @precondition(lambda self: self.records - self.done.keys())
    @rule(data=st.data(), commits=st.booleans())
    def transaction(self, data: st.DataObject, commits: bool) -> None:
        waiting = sorted(self.records - self.done.keys())
        chosen = data.draw(
            st.one_of(st.lists(st.sampled_from(waiting), min_size=1, max_size=20), st.just(waiting))
        )
        outcome = data.draw(st.sampled_from(Outcome))
        fresh = [each for each in chosen if self.progress.stage(each, outcome)]
        assert sorted(fresh) == sorted(set(chosen))
        if not commits:
            self.progress.abort()
            return
        for chunk, value in self.progress.staged_values():
            if value is None:
                del self.state[chunk]
            else:
                self.state[chunk] = value
        self.floor = self.progress.staged_floor()
        self.progress.commit()
        self.done |= dict.fromkeys(chosen, outcome)

    @rule()
    def restart(self) -> None:
        chunks = {chunk: Bitmaps.decode(value) for chunk, value in self.state.items()}
        self.progress = Progress(Offset(self.floor), chunks)
        for offset in sorted(self.records):
            if offset >= self.floor and not self.progress.is_done(offset):
                self.progress.waits(offset)
        self.progress.read(Offset(self.end))

    @invariant()
    def knows_what_is_done(self) -> None:
        for offset in self.records:
            assert self.progress.is_done(offset) == (offset in self.done)
            if self.progress.outcome(offset) is not None:
                assert self.progress.outcome(offset) is self.done[offset]

    @invariant()
    def the_floor_passes_nothing_that_waits(self) -> None:
        waiting = self.records - self.done.keys()
        assert all(self.floor <= offset for offset in waiting)
        assert all((chunk + 1) * CHUNK > self.floor for chunk in self.state)


TestProgress = ProgressMachine.TestCase


def test_a_completed_chunk_is_removed_from_the_state_topic() -> None:
    progress = Progress(Offset(0), {0: Bitmaps(delivered=1)})
    progress.waits(1)
    progress.read(Offset(CHUNK))
    assert progress.stage(1, Outcome.DELIVERED)
    assert list(progress.staged_values()) == [(0, None)]
    assert progress.staged_floor() == CHUNK


@given(st.builds(Bitmaps, st.integers(0, 2**CHUNK - 1), st.integers(0, 2**CHUNK - 1)))
def test_bitmaps_survive_the_state_topic(bits: Bitmaps) -> None:
    assert Bitmaps.decode(bits.encode()) == bits


@pytest.mark.parametrize(
    "value", [b"", b"\x02\0\0", b"\x01", b"\x01\0\x09x", b"\x01" + b"\0" * 9999]
)
def test_broken_or_newer_progress_is_refused(value: bytes) -> None:
    with pytest.raises(UnreadableState):
        Bitmaps.decode(value)


def test_keys_of_the_state_topic_are_encoded() -> None:
    for chunk in (None, 12):
        key = StateKey(Uuid(b"sixteen bytes id"), 7, chunk)
        assert StateKey.decode(key.encode()) == key
    with pytest.raises(UnreadableState, match="broken"):
        StateKey.decode(b"later.orders")


@pytest.mark.parametrize("to", [0, 5, CHUNK - 1, CHUNK, CHUNK + 3, 2 * CHUNK + 1])
def test_progress_beyond_a_lost_end_of_the_log_is_forgotten(to: int) -> None:
    """In the written state too, for the next reader."""
    done = {3, CHUNK - 1, CHUNK + 2, 2 * CHUNK}
    progress = Progress(Offset(0), {})
    for each in {*done, 2, CHUNK + 1}:
        progress.waits(each)
    progress.read(Offset(3 * CHUNK))
    for each in done:
        progress.stage(each, Outcome.DELIVERED)
    state = dict(progress.staged_values())
    progress.commit()
    assert progress.end == 2 * CHUNK + 1
    chunks = {chunk: Bitmaps.decode(value) for chunk, value in state.items() if value is not None}
    loaded = Progress(Offset(0), chunks)
    assert loaded.end == 2 * CHUNK + 1

    loaded.rewind([range(to, 2 * CHUNK + 1)])
    state |= dict(loaded.staged_values())
    assert loaded.staged_floor() == 0
    loaded.commit()
    chunks = {chunk: Bitmaps.decode(value) for chunk, value in state.items() if value is not None}
    for found in (loaded, Progress(Offset(0), chunks)):
        assert {each for each in range(3 * CHUNK) if found.is_done(each)} == {
            each for each in done if each < to
        }
        assert found.end <= to


def test_a_floor_beyond_the_end_is_moved_back() -> None:
    progress = Progress(Offset(150), {0: Bitmaps(delivered=0b11 << 148)})
    progress.rewind([range(100, 150)])
    assert (progress.staged_floor(), progress.read_to) == (100, 100)
    progress.commit()
    assert [progress.is_done(each) for each in (99, 100, 149)] == [True, False, False]
