"""Who counts as in sync, and what is committed by that. Pure: values in, values out.

The rules are those of Kafka 3.9. An in-sync set that the leader has proposed is not the cluster's
yet, so each rule says which set it goes by (KIP-497): what a replica more makes safer counts it
at once, what a replica less makes easier waits until the controller has confirmed it.
"""

from collections.abc import Container, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

UNKNOWN_OFFSET = -1
"""Where a follower is that has not fetched from this leader yet."""

NEVER_MS = -(2**62)


class FollowerState(Struct, frozen=True, gc=False):
    """What a leader knows of one follower."""

    end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    leader_end_offset: int = UNKNOWN_OFFSET
    """Where the leader's log ended when the follower last fetched."""
    fetched_ms: int = NEVER_MS
    caught_up_ms: int = NEVER_MS
    """When it was last seen to have all that the leader had."""
    broker_epoch: int = -1
    """Of the life in which it fetched; -1 where it does not tell (before Fetch v15)."""

    def is_caught_up(
        self,
        leader_end_offset: int,
        now_ms: int,
        lag_max_ms: int,
        lag_max_messages: int | None = None,
    ) -> bool:
        """It has everything now, or had within the time that it is allowed to lag, and is not
        further behind than `lag_max_messages`, if that counts (as before Kafka 0.9).
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
    """A fetch, as it tells where its follower is: it has whatever lies before `offset`."""

    replica: int
    offset: int
    log_start_offset: int = UNKNOWN_OFFSET
    broker_epoch: int = -1


def after_fetch(
    state: FollowerState, fetch: FollowerFetch, leader_end_offset: int, now_ms: int
) -> FollowerState:
    """The follower as this fetch shows it.

    Where the leader is written to all the time, no fetch ever finds its end. So a fetch that
    reaches what was the end at the one before has caught up by that earlier moment.
    """
    caught_up_ms = state.caught_up_ms
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
    """A follower when a leader epoch begins; `state` is None where another broker led before.

    Those in sync get the whole time to fetch; the others have been late for ever.
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


class Joining(Struct, frozen=True):
    """One replica is proposed to come in."""

    replica: int


class Leaving(Struct, frozen=True):
    """Replicas are proposed to go out."""

    replicas: frozenset[int]


IsrChange: TypeAlias = Joining | Leaving


class Isr(Struct, frozen=True):
    """The in-sync set that the controller has confirmed, and the change that is on its way."""

    committed: tuple[int, ...]
    """In the order in which it grew. `min.insync.replicas` counts these."""
    change: IsrChange | None = None

    @property
    def maximal(self) -> tuple[int, ...]:
        """Every replica that may be in it by now: what is committed must be in all of them."""
        match self.change:
            case Joining(replica):
                return (*self.committed, replica)
            case _:
                return self.committed

    @property
    def proposed(self) -> tuple[int, ...]:
        """The set that there will be if the controller agrees."""
        match self.change:
            case Joining(replica):
                return (*self.committed, replica)
            case Leaving(replicas):
                return tuple(each for each in self.committed if each not in replicas)
            case None:
                return self.committed


def effective_min_isr(min_insync_replicas: int, replica_count: int) -> int:
    """A topic with fewer replicas than `min.insync.replicas` needs all that it has."""
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
    """Who has to leave: those that are behind, and have been for longer than they may.

    None while a change is on its way: the next one has to be decided on what came of it.
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
    """It has all that is committed, and nothing that the leader's log does not have.

    The second is why it must have reached the start of the leader's epoch: before that its end
    says nothing, for its last records may still be those of a leader that was deposed.
    """
    return (
        isr.change is None
        and replica not in isr.committed
        and state.end_offset >= max(high_watermark, epoch_start_offset)
    )


def committed_end(
    leader_end_offset: int, counted: Iterable[FollowerState], *, under_min_isr: bool
) -> int | None:
    """The high watermark: where the shortest log of those that count ends.

    None: it stays. With fewer in sync than `min.insync.replicas` nothing is committed, not even
    for acks=1: it could be lost with a single broker and yet have been read (KIP-966).
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

    Also for one that is about to join: with the leader alone in sync the high watermark would
    else run ahead with the log's end, and a follower that is always a fetch behind could never
    reach it. That is stricter than safety asks for, and ends when it has not caught up for
    `replica.lag.time.max.ms`, or is more than `replica.lag.max.messages` behind.
    """
    return replica in maximal_isr or (
        eligible and state.is_caught_up(leader_end_offset, now_ms, lag_max_ms, lag_max_messages)
    )
