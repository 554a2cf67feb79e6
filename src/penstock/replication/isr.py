"""Rules for the in-sync set and the high watermark. Pure: values in, values out.

The rules are those of Kafka 3.9. A proposed in-sync set is not the cluster's yet, so there are two
sets (KIP-497). The high watermark goes by the maximal one, with a replica that is about to join and
those about to leave: committed records must be on all replicas of whichever set the controller has.
`min.insync.replicas` counts the confirmed one.
"""

from collections.abc import Container, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

UNKNOWN_OFFSET = -1
"""The end offset of a follower that has not fetched from this leader yet."""

NEVER_MS = -(2**62)


class FollowerState(Struct, frozen=True, gc=False):
    """What a leader knows about one follower."""

    end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    leader_end_offset: int = UNKNOWN_OFFSET
    """The leader's end offset at the follower's last fetch."""
    fetched_ms: int = NEVER_MS
    caught_up_ms: int = NEVER_MS
    """When the follower last had everything that the leader had."""
    broker_epoch: int = -1
    """The broker epoch in which it fetched; -1 if unknown (before Fetch v15)."""

    def acknowledged(self, high_watermark: int) -> int:
        """What it has if it is in sync: before it fetches, everything committed."""
        return high_watermark if self.end_offset == UNKNOWN_OFFSET else self.end_offset

    def is_caught_up(
        self,
        leader_end_offset: int,
        now_ms: int,
        lag_max_ms: int,
        lag_max_messages: int | None = None,
    ) -> bool:
        """Whether it has everything now, or had within `lag_max_ms`, and lags at most
        `lag_max_messages`, if that is set (as before Kafka 0.9).
        """
        if self.end_offset == leader_end_offset:
            return True
        if (
            lag_max_messages is not None
            and self.end_offset != UNKNOWN_OFFSET
            and leader_end_offset - self.end_offset > lag_max_messages
        ):
            return False
        return now_ms - self.caught_up_ms <= lag_max_ms


class FollowerFetch(Struct, frozen=True, gc=False):
    """A follower's fetch, which acknowledges everything before `offset`.

    It counts once, on arrival: when a waiting fetch is tried again, its broker may have died.
    """

    replica: int
    offset: int
    log_start_offset: int = UNKNOWN_OFFSET
    broker_epoch: int = -1


def after_fetch(
    state: FollowerState,
    fetch: FollowerFetch,
    leader_end_offset: int,
    now_ms: int,
    high_watermark: int = 0,
) -> FollowerState:
    """The follower's state after this fetch.

    While the leader is written to continuously, no fetch reaches its end. So a fetch that reaches
    the end as of the previous fetch counts as caught up at the time of that one.

    A fetch from before the previous one withdraws what that one acknowledged: the follower has
    found its log damaged. So has one whose first fetch lacks committed records, if it is in sync.
    It lags until it has caught up again.
    """
    caught_up_ms = state.caught_up_ms
    if fetch.offset < state.acknowledged(high_watermark):
        caught_up_ms = NEVER_MS
    if fetch.offset >= leader_end_offset:
        caught_up_ms = max(caught_up_ms, now_ms)
    elif fetch.offset >= state.leader_end_offset:
        caught_up_ms = max(caught_up_ms, state.fetched_ms)
    return FollowerState(
        fetch.offset,
        fetch.log_start_offset,
        max(leader_end_offset, state.leader_end_offset),
        now_ms,
        caught_up_ms,
        fetch.broker_epoch,
    )


def at_election(
    state: FollowerState | None, leader_end_offset: int, now_ms: int, *, in_sync: bool
) -> FollowerState:
    """A follower's state when a leader epoch begins; `state` is None if another broker led before.

    In-sync followers get the whole lag time to fetch; the others start as lagging.
    """
    caught_up_ms = now_ms if in_sync else NEVER_MS
    if state is None:
        return FollowerState(caught_up_ms=caught_up_ms)
    return FollowerState(
        state.end_offset,
        state.log_start_offset,
        leader_end_offset,
        caught_up_ms,
        caught_up_ms,
        state.broker_epoch,
    )


class PendingExpandIsr(Struct, frozen=True):
    """A replica is proposed to join the in-sync set."""

    replica: int


class PendingShrinkIsr(Struct, frozen=True):
    """Replicas are proposed to leave the in-sync set."""

    replicas: frozenset[int]


PendingIsrChange: TypeAlias = PendingExpandIsr | PendingShrinkIsr


class Isr(Struct, frozen=True):
    """The in-sync set that the controller has confirmed, and a pending change."""

    committed: tuple[int, ...]
    """The members in the order of joining. `min.insync.replicas` counts these."""
    change: PendingIsrChange | None = None

    @property
    def maximal(self) -> tuple[int, ...]:
        """Every replica that may be in the set by now; committed records must be on all of them."""
        match self.change:
            case PendingExpandIsr(replica):
                return (*self.committed, replica)
            case _:
                return self.committed

    @property
    def proposed(self) -> tuple[int, ...]:
        """The set if the controller accepts the change."""
        match self.change:
            case PendingExpandIsr(replica):
                return (*self.committed, replica)
            case PendingShrinkIsr(replicas):
                return tuple(each for each in self.committed if each not in replicas)
            case None:
                return self.committed


def effective_min_isr(min_insync_replicas: int, replica_count: int) -> int:
    """`min.insync.replicas`, or the number of replicas if that is smaller."""
    return min(min_insync_replicas, replica_count)


def out_of_sync(
    isr: Isr,
    leader: int,
    followers: Mapping[int, FollowerState],
    leader_end_offset: int,
    now_ms: int,
    lag_max_ms: int,
    lag_max_messages: int | None = None,
) -> frozenset[int]:
    """Followers that have lagged for too long and must leave the in-sync set.

    Empty while a change is pending: the next change depends on its outcome.
    """
    if isr.change is not None:
        return frozenset()
    return frozenset(
        replica
        for replica in isr.committed
        if replica != leader
        and (
            (state := followers.get(replica)) is None
            or not state.is_caught_up(leader_end_offset, now_ms, lag_max_ms, lag_max_messages)
        )
    )


def may_join(
    isr: Isr, replica: int, state: FollowerState, high_watermark: int, epoch_start_offset: int
) -> bool:
    """Whether a follower has all committed records, and none that the leader lacks.

    For the latter it must have reached the start of the leader's epoch: before that, its last
    records may still be those of a former leader.
    """
    return (
        isr.change is None
        and replica not in isr.committed
        and state.end_offset >= max(high_watermark, epoch_start_offset)
    )


def committed_end(
    leader_end_offset: int, counted: Iterable[FollowerState], *, under_min_isr: bool
) -> int | None:
    """The high watermark: the smallest end offset of the leader and the counted followers.

    None means that it stays. With fewer in sync than `min.insync.replicas` nothing is committed,
    not even for acks=1: records could be read and then lost with a single broker (KIP-966).
    """
    if under_min_isr:
        return None
    return min((each.end_offset for each in counted), default=leader_end_offset)


def holds_back(
    maximal_isr: Container[int],
    replica: int,
    state: FollowerState,
    leader_end_offset: int,
    now_ms: int,
    lag_max_ms: int,
    lag_max_messages: int | None = None,
    *,
    eligible: bool,
) -> bool:
    """Whether the high watermark waits for this follower.

    It also waits for one that is about to join. With the leader alone in sync, the high watermark
    would otherwise move with every append, and a follower that is always one fetch behind could
    never reach it. This is stricter than safety requires, and ends when the follower has lagged for
    `replica.lag.time.max.ms`, or by more than `replica.lag.max.messages`.
    """
    return replica in maximal_isr or (
        eligible and state.is_caught_up(leader_end_offset, now_ms, lag_max_ms, lag_max_messages)
    )
