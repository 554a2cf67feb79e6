"""Leader epochs of a log: where each begins and ends."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.corrupt import CorruptFile
from penstock.log.epochs import UNDEFINED, EpochStart, LeaderEpochs

END = 100
STARTS = [EpochStart(2, 0), EpochStart(4, 10), EpochStart(7, 30)]


@pytest.fixture
def epochs() -> LeaderEpochs:
    return LeaderEpochs(STARTS)


def test_an_epoch_begins_once(epochs: LeaderEpochs) -> None:
    assert epochs.latest == 7
    assert not epochs.assign(7, 30)
    assert not epochs.assign(7, 50)
    assert epochs.assign(8, 60)
    assert epochs.entries == [*STARTS, EpochStart(8, 60)]


def test_a_newer_epoch_at_an_older_offset_replaces_what_it_contradicts(
    epochs: LeaderEpochs,
) -> None:
    assert epochs.assign(9, 10)
    assert epochs.entries == [EpochStart(2, 0), EpochStart(9, 10)]


def test_an_older_epoch_replaces_the_newer_ones(epochs: LeaderEpochs) -> None:
    assert epochs.assign(5, 40)
    assert epochs.entries == [EpochStart(2, 0), EpochStart(4, 10), EpochStart(5, 40)]


@pytest.mark.parametrize(("epoch", "start"), [(-1, 0), (0, -1)])
def test_negative_epochs_and_offsets_are_refused(epoch: int, start: int) -> None:
    with pytest.raises(ValueError, match="cannot begin"):
        LeaderEpochs().assign(epoch, start)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, UNDEFINED),
        (0, (0, 0)),
        (2, (2, 10)),
        (3, (2, 10)),
        (4, (4, 30)),
        (6, (4, 30)),
        (7, (7, END)),
        (8, UNDEFINED),
    ],
)
def test_the_end_of_an_epoch_is_where_the_next_known_one_begins(
    epochs: LeaderEpochs, asked: int, answer: tuple[int, int]
) -> None:
    assert epochs.end_offset_for(asked, END) == answer


def test_a_log_without_epochs_knows_no_end() -> None:
    assert LeaderEpochs().end_offset_for(0, END) == UNDEFINED
    assert UNDEFINED == (-1, -1)  # as clients read it
    assert LeaderEpochs().latest is None


@pytest.mark.parametrize(
    ("other", "start", "end", "shared"),
    [
        (STARTS, 0, END, END),
        ([EpochStart(2, 0), EpochStart(4, 10), EpochStart(8, 30)], 0, END, 30),
        ([EpochStart(2, 0), EpochStart(4, 10), EpochStart(7, 20)], 0, END, 20),
        # Where both are not known, a difference does not count.
        ([EpochStart(3, 0), EpochStart(4, 10), EpochStart(7, 30)], 10, END, END),
        ([EpochStart(2, 0), EpochStart(4, 10), EpochStart(8, 30)], 0, 30, 30),
        ([EpochStart(2, 0), EpochStart(4, 10), EpochStart(8, 30)], 0, 20, 20),
    ],
)
def test_logs_are_equal_up_to_the_first_offset_of_different_epochs(
    epochs: LeaderEpochs, other: list[EpochStart], start: int, end: int, shared: int
) -> None:
    assert epochs.shared_end(LeaderEpochs(other), start, end) == shared


@pytest.mark.parametrize(("offset", "epoch"), [(0, 2), (9, 2), (10, 4), (29, 4), (30, 7), (99, 7)])
def test_each_offset_has_the_epoch_that_wrote_it(
    epochs: LeaderEpochs, offset: int, epoch: int
) -> None:
    assert epochs.epoch_for(offset) == epoch


def test_offsets_before_the_first_known_epoch_have_no_epoch() -> None:
    assert LeaderEpochs([EpochStart(1, 5)]).epoch_for(4) is None


def test_truncating_the_end_forgets_epochs_that_begin_there(epochs: LeaderEpochs) -> None:
    assert not epochs.truncate_from_end(31)
    assert epochs.truncate_from_end(30)
    assert epochs.entries == STARTS[:2]
    assert epochs.truncate_from_end(0)
    assert epochs.entries == []


def test_truncating_the_start_moves_the_epoch_that_spans_it(epochs: LeaderEpochs) -> None:
    assert epochs.truncate_from_start(20)
    assert epochs.entries == [EpochStart(4, 20), EpochStart(7, 30)]
    assert not epochs.truncate_from_start(20)
    assert not epochs.truncate_from_start(3)


def test_the_checkpoint_text_is_kafkas(epochs: LeaderEpochs) -> None:
    assert epochs.encode() == b"0\n3\n2 0\n4 10\n7 30\n"
    assert LeaderEpochs.decode(epochs.encode()).entries == STARTS


def test_a_damaged_checkpoint_is_refused() -> None:
    with pytest.raises(CorruptFile, match="declares 3 entries"):
        LeaderEpochs.decode(b"0\n3\n2 0\n4 1")


assignments = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50)), max_size=20)


@given(assignments, st.integers(0, 60), st.integers(0, 60))
def test_epochs_and_starts_always_ascend(
    assigned: list[tuple[int, int]], end: int, start: int
) -> None:
    epochs = LeaderEpochs()
    for epoch, at in assigned:
        epochs.assign(epoch, at)
    epochs.truncate_from_end(end)
    epochs.truncate_from_start(start)
    for former, latter in pairwise(epochs.entries):
        assert former.epoch < latter.epoch
        assert former.start_offset < latter.start_offset
    for entry in epochs.entries:
        assert epochs.epoch_for(entry.start_offset) == entry.epoch
    assert LeaderEpochs.decode(epochs.encode()).entries == epochs.entries
