"""Where a follower truncates its log, by leader epochs."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log.epochs import EpochStart, LeaderEpochs
from penstock.replication.truncation import (
    EpochEnd,
    LogRestart,
    OffsetTruncation,
    diverging,
    truncation_by_epoch,
    truncation_of_later_epochs,
    within,
)


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(EpochStart(*each) for each in entries)


@pytest.mark.parametrize(
    ("leader", "own", "end_offset", "cut"),
    [
        # Both know the epoch: the shorter log ends it.
        (EpochEnd(1, 7), epochs((0, 0), (1, 5)), 9, OffsetTruncation(7, is_complete=True)),
        (EpochEnd(0, 7), epochs((0, 0), (1, 5)), 9, OffsetTruncation(5, is_complete=True)),
        # The follower does not have the leader's epoch 1 and asks again, below its own 2 (KIP-279).
        (EpochEnd(1, 20), epochs((0, 0), (2, 8)), 12, OffsetTruncation(8, is_complete=False)),
        # The leader's first known epoch is older than all of the follower's.
        (EpochEnd(3, 7), epochs((5, 6)), 9, OffsetTruncation(6, is_complete=True)),
        # The follower knows no epochs at all, or the leader none that old.
        (EpochEnd(1, 7), epochs(), 9, OffsetTruncation(7, is_complete=True)),
        (EpochEnd(-1, -1), epochs((0, 0)), 9, OffsetTruncation(4, is_complete=True)),
        # A truncation point past the end changes nothing.
        (EpochEnd(1, 30), epochs((1, 0)), 9, OffsetTruncation(9, is_complete=True)),
    ],
)
def test_a_follower_truncates_where_epochs_diverge(
    leader: EpochEnd, own: LeaderEpochs, end_offset: int, cut: OffsetTruncation
) -> None:
    assert truncation_by_epoch(leader, own, end_offset, 4) == cut


@pytest.mark.parametrize(
    ("last_fetched_epoch", "fetch_offset", "found"),
    [
        (2, 9, None),
        (2, 10, None),
        (2, 11, EpochEnd(2, 10)),
        (1, 8, None),
        (1, 9, EpochEnd(1, 8)),
        (0, 6, EpochEnd(0, 5)),
        (3, 9, EpochEnd(-1, -1)),
    ],
)
def test_a_leader_returns_where_a_follower_diverged(
    last_fetched_epoch: int, fetch_offset: int, found: EpochEnd | None
) -> None:
    leader = epochs((0, 0), (1, 5), (2, 8))
    assert diverging(leader, 10, last_fetched_epoch, fetch_offset) == found


@pytest.mark.parametrize(
    ("leader_start", "leader_end", "end_offset", "done"),
    [
        (0, 5, 9, OffsetTruncation(5, is_complete=True)),
        (12, 20, 9, LogRestart(12)),
        (9, 20, 9, None),
        (0, 9, 9, None),
    ],
)
def test_a_log_outside_its_leaders_range_is_moved_into_it(
    leader_start: int, leader_end: int, end_offset: int, done: OffsetTruncation | LogRestart | None
) -> None:
    assert within(leader_start, leader_end, end_offset) == done


@pytest.mark.parametrize(("leader_epoch", "cut"), [(1, 8), (2, 8), (5, None), (6, None)])
def test_batches_of_a_later_epoch_than_the_leaders_are_truncated(
    leader_epoch: int, cut: int | None
) -> None:
    found = truncation_of_later_epochs(epochs((0, 0), (1, 5), (5, 8)), leader_epoch)
    assert found == (None if cut is None else OffsetTruncation(cut, is_complete=True))


class Log:
    """A log as truncation sees it: the epoch of each record."""

    def __init__(self, written: list[int]) -> None:
        self.written = written

    @property
    def epochs(self) -> LeaderEpochs:
        starts = [(0, -1), *enumerate(self.written)]
        return LeaderEpochs(
            EpochStart(epoch, at) for (_, before), (at, epoch) in pairwise(starts) if epoch > before
        )


@st.composite
def histories(draw: st.DrawFn) -> tuple[Log, Log]:
    """Two logs as leaders leave them: an epoch's records are a run that one leader wrote, so two
    logs that both have records of it have the same ones, as far as the shorter goes.
    """
    common = draw(st.integers(0, 6))
    shared = sorted(draw(st.lists(st.integers(0, 3), min_size=common, max_size=common)))
    last = shared[-1] if shared else -1
    spread = st.lists(st.integers(1, 8), max_size=8)
    mine = [last + each for each in sorted(draw(spread))]
    others = [last + each for each in sorted(draw(spread)) if last + each not in mine]
    more = [last] * draw(st.integers(0, 3)) if shared else []
    if draw(st.booleans()):
        return Log([*shared, *more, *mine]), Log([*shared, *others])
    return Log([*shared, *mine]), Log([*shared, *more, *others])


@given(histories())
def test_asking_until_nothing_diverges_leaves_a_prefix_of_the_leaders_log(
    pair: tuple[Log, Log],
) -> None:
    leader, follower = pair
    top = max([*leader.written, *follower.written, 0]) + 1
    leader_epochs = leader.epochs
    leader_epochs.assign(top, len(leader.written))  # it begins its own epoch, as leaders do
    shared = 0
    while (
        shared < min(len(leader.written), len(follower.written))
        and leader.written[shared] == follower.written[shared]
    ):
        shared += 1
    for _ in range(20):
        own = follower.epochs
        if own.latest is None:
            follower.written = []
            break
        end = len(follower.written)
        found = diverging(leader_epochs, len(leader.written), own.latest, end)
        if found is None:
            break
        cut = truncation_by_epoch(found, own, end, 0)
        assert cut.offset < end, "each question must make progress"
        del follower.written[cut.offset :]
    else:
        pytest.fail("it never ends")
    assert follower.written == leader.written[: len(follower.written)]
    assert len(follower.written) == shared, "nothing that both have may go"
