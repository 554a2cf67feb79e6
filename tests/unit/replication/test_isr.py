"""Which replicas are in sync, when they join and leave, and what is committed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replication.isr import (
    NEVER_MS,
    FollowerFetch,
    FollowerState,
    Isr,
    PendingExpandIsr,
    PendingShrinkIsr,
    after_fetch,
    at_election,
    committed_end,
    effective_min_isr,
    holds_back,
    may_join,
    out_of_sync,
)

LAG_MS = 30_000


def caught_up(end_offset: int, at_ms: int) -> FollowerState:
    return FollowerState(end_offset, 0, end_offset, at_ms, at_ms, 7)


# The sets


@pytest.mark.parametrize(
    ("isr", "maximal", "proposed"),
    [
        (Isr((1, 2)), (1, 2), (1, 2)),
        (Isr((1, 2), PendingExpandIsr(3)), (1, 2, 3), (1, 2, 3)),
        (Isr((1, 2, 3), PendingShrinkIsr(frozenset({2}))), (1, 2, 3), (1, 3)),
        (Isr((1, 2, 3), PendingShrinkIsr(frozenset({2, 3}))), (1, 2, 3), (1,)),
    ],
)
def test_a_joining_replica_counts_at_once_and_a_leaving_one_until_confirmed(
    isr: Isr, maximal: tuple[int, ...], proposed: tuple[int, ...]
) -> None:
    assert isr.maximal == maximal
    assert isr.proposed == proposed


def test_a_topic_with_fewer_replicas_than_min_insync_needs_all_of_them() -> None:
    assert effective_min_isr(2, 1) == 1
    assert effective_min_isr(2, 3) == 2


# Catching up


@pytest.mark.parametrize(
    ("before", "offset", "leader_end", "caught_up_ms"),
    [
        # It is at the leader's end: caught up now.
        (FollowerState(5, 0, 5, 100, 100), 8, 8, 200),
        # It has what the leader had at its last fetch, at 100: caught up then.
        (FollowerState(5, 0, 8, 100, 50), 8, 12, 100),
        # It does not even have that.
        (FollowerState(5, 0, 8, 100, 50), 7, 12, 50),
        # Time never goes back.
        (FollowerState(5, 0, 8, 100, 150), 8, 12, 150),
    ],
)
def test_a_fetch_shows_when_its_follower_was_caught_up(
    before: FollowerState, offset: int, leader_end: int, caught_up_ms: int
) -> None:
    after = after_fetch(before, FollowerFetch(2, offset, 0, 7), leader_end, 200)
    assert after.caught_up_ms == caught_up_ms
    assert (after.end_offset, after.fetched_ms, after.broker_epoch) == (offset, 200, 7)


def test_a_follower_that_takes_an_offset_back_lags_until_it_has_caught_up() -> None:
    before = FollowerState(8, 0, 8, 100, 100)
    damaged = after_fetch(before, FollowerFetch(2, 5), 8, 110)
    assert not damaged.is_caught_up(8, 110, LAG_MS)
    assert after_fetch(damaged, FollowerFetch(2, 8), 9, 120).is_caught_up(9, 120, LAG_MS)


def test_a_follower_that_keeps_up_with_a_busy_leader_never_lags() -> None:
    state = at_election(None, 0, 0, in_sync=True)
    leader_end = 0
    for now_ms in range(0, 100 * LAG_MS, LAG_MS // 2):
        fetched = leader_end  # everything as of the last fetch
        leader_end += 10
        state = after_fetch(state, FollowerFetch(2, fetched), leader_end, now_ms)
        assert state.is_caught_up(leader_end, now_ms, LAG_MS)


@pytest.mark.row("A062")
def test_a_follower_that_keeps_falling_behind_lags_eventually() -> None:
    state = at_election(None, 0, 0, in_sync=True)
    late_at = None
    for now_ms in range(0, 5 * LAG_MS, 500):  # each fetch gets half of what was written
        state = after_fetch(state, FollowerFetch(2, now_ms), 2 * now_ms + 1_000, now_ms)
        if not state.is_caught_up(2 * now_ms + 1_000, now_ms, LAG_MS):
            late_at = now_ms
            break
    assert late_at is not None
    assert late_at <= 2 * LAG_MS


@pytest.mark.parametrize("known", [None, FollowerState(9, 0, 9, 40, 40, 7)])
def test_a_new_epoch_gives_lag_time_only_to_in_sync_followers(known: FollowerState | None) -> None:
    inside = at_election(known, 9, 100, in_sync=True)
    outside = at_election(known, 9, 100, in_sync=False)
    assert inside.is_caught_up(10, 100 + LAG_MS, LAG_MS)
    assert not inside.is_caught_up(10, 101 + LAG_MS, LAG_MS)
    assert not outside.is_caught_up(10, 100, LAG_MS)


def test_a_new_leader_knows_nothing_about_its_followers() -> None:
    assert at_election(None, 9, 100, in_sync=True).end_offset == -1
    assert at_election(FollowerState(9), 9, 100, in_sync=True).end_offset == 9


# Leaving


@pytest.mark.row("A062")
@pytest.mark.parametrize(
    ("state", "leaves"),
    [
        (caught_up(10, NEVER_MS), False),  # idle: it has everything, however long ago it fetched
        (caught_up(9, 100_000 - LAG_MS), False),
        (caught_up(9, 100_000 - LAG_MS - 1), True),
        (None, True),
    ],
)
def test_only_a_follower_that_has_lagged_too_long_leaves(
    state: FollowerState | None, leaves: bool
) -> None:
    followers = {3: caught_up(10, 100_000)} | ({} if state is None else {2: state})
    gone = out_of_sync(Isr((1, 2, 3)), 1, followers, 10, 100_000, LAG_MS)
    assert gone == (frozenset({2}) if leaves else frozenset())


@pytest.mark.row("A063")
@pytest.mark.parametrize(
    ("state", "limit", "leaves"),
    [
        (caught_up(90, 100_000), None, False),
        (caught_up(90, 100_000), 10, False),
        (caught_up(89, 100_000), 10, True),
        (caught_up(100, NEVER_MS), 10, False),
        (caught_up(99, NEVER_MS), 10, True),  # by time
        (at_election(None, 100, 100_000, in_sync=True), 10, False),  # it has not fetched yet
    ],
)
def test_a_follower_too_many_records_behind_leaves_if_that_is_limited(
    state: FollowerState, limit: int | None, leaves: bool
) -> None:
    followers = {2: state}
    gone = out_of_sync(Isr((1, 2)), 1, followers, 100, 100_000, LAG_MS, limit)
    assert gone == (frozenset({2}) if leaves else frozenset())
    waits = holds_back((1,), 2, state, 100, 100_000, LAG_MS, limit, eligible=True)
    assert waits is not leaves, "nor is it waited for any longer"


@pytest.mark.parametrize("change", [PendingExpandIsr(4), PendingShrinkIsr(frozenset({3}))])
def test_no_replica_leaves_while_a_change_is_pending(
    change: PendingExpandIsr | PendingShrinkIsr,
) -> None:
    followers = {2: caught_up(1, NEVER_MS), 3: caught_up(1, NEVER_MS)}
    assert out_of_sync(Isr((1, 2, 3), change), 1, followers, 10, 100_000, LAG_MS) == frozenset()


# Joining


@pytest.mark.parametrize(
    ("end_offset", "high_watermark", "epoch_start", "joins"),
    [
        (10, 10, 5, True),
        (9, 10, 5, False),  # it lacks a committed record
        (10, 8, 11, False),  # its log may still have to be truncated
        (11, 8, 11, True),
    ],
)
def test_a_joining_replica_has_all_committed_records_and_reached_the_epoch(
    end_offset: int, high_watermark: int, epoch_start: int, joins: bool
) -> None:
    state = caught_up(end_offset, 0)
    assert may_join(Isr((1,)), 2, state, high_watermark, epoch_start) is joins


def test_no_replica_joins_twice_or_while_a_change_is_pending() -> None:
    state = caught_up(10, 0)
    assert not may_join(Isr((1, 2)), 2, state, 10, 0)
    assert not may_join(Isr((1,), PendingExpandIsr(3)), 2, state, 10, 0)


# The high watermark


@pytest.mark.row("A066")
@pytest.mark.parametrize(
    ("ends", "under_min_isr", "committed"),
    [
        ([], False, 10),
        ([7, 8], False, 7),
        ([7, 8], True, None),
        ([], True, None),
        ([-1, 8], False, -1),
    ],
)
def test_the_shortest_log_that_counts_sets_the_high_watermark(
    ends: list[int], under_min_isr: bool, committed: int | None
) -> None:
    counted = [FollowerState(end) for end in ends]
    assert committed_end(10, counted, under_min_isr=under_min_isr) == committed


@pytest.mark.parametrize(
    ("isr", "state", "eligible", "waits"),
    [
        (Isr((1, 2)), caught_up(5, NEVER_MS), False, True),
        (Isr((1,), PendingExpandIsr(2)), caught_up(5, NEVER_MS), False, True),
        (Isr((1, 2), PendingShrinkIsr(frozenset({2}))), caught_up(5, NEVER_MS), False, True),
        (Isr((1,)), caught_up(5, 100_000 - LAG_MS), True, True),
        (Isr((1,)), caught_up(5, 100_000 - LAG_MS), False, False),
        (Isr((1,)), caught_up(5, 100_000 - LAG_MS - 1), True, False),
    ],
)
def test_the_high_watermark_waits_for_the_maximal_set_and_for_joining_replicas(
    isr: Isr, state: FollowerState, eligible: bool, waits: bool
) -> None:
    assert holds_back(isr.maximal, 2, state, 10, 100_000, LAG_MS, eligible=eligible) is waits


states = st.builds(
    FollowerState,
    end_offset=st.integers(-1, 20),
    caught_up_ms=st.integers(0, 100),
)


@given(
    st.dictionaries(st.integers(2, 4), states),
    st.sets(st.integers(2, 4)),
    st.integers(2, 4) | st.none(),
    st.integers(0, 20),
)
def test_committed_records_are_in_every_replica_that_could_be_elected(
    followers: dict[int, FollowerState], others: set[int], joining: int | None, end_offset: int
) -> None:
    in_sync = {1, *(others & followers.keys())}
    change = PendingExpandIsr(joining) if joining in followers and joining not in in_sync else None
    isr = Isr(tuple(in_sync), change)
    counted = [
        state
        for replica, state in followers.items()
        if holds_back(isr.maximal, replica, state, end_offset, 100, 50, eligible=True)
    ]
    committed = committed_end(end_offset, counted, under_min_isr=False)
    assert committed is not None
    for replica in {*isr.committed, *isr.proposed} - {1}:
        assert followers[replica].end_offset >= committed
