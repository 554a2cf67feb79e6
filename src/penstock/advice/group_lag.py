"""Explains in one sentence why a group lags. Pure: from some seconds of observed progress to the
cause of most of the lag.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from shlex import quote

from penstock.advice.finding import some
from penstock.coordinator.group.rebalance_log import Rebalances
from penstock.coordinator.group.refused_commits import RefusedCommit
from penstock.counted import counted
from penstock.types import TopicPartition

RECENT_MS = 300_000
LOOP = 3
"""This many rebalances within `RECENT_MS` count as a loop."""
MOST = 0.8
"""A partition or member with at least this share of the lag is its cause."""
HOT = 3
"""A hot partition gets at least this many times the records of an average other one."""
LARGE_BYTES = 1 << 20
"""The default of max.partition.fetch.bytes, which many clients can handle."""


class Cause(StrEnum):
    """The causes, with names for programs."""

    NONE = "none"
    NO_MEMBERS = "no_members"
    FENCED = "fenced"
    REBALANCING = "rebalancing"
    OVERSIZE_RECORD = "oversize_record"
    STUCK_COMMIT = "stuck_commit"
    PAUSED = "paused"
    HOT_PARTITION = "hot_partition"
    SLOW_MEMBER = "slow_member"
    TOO_FEW_MEMBERS = "too_few_members"
    SLOW_PROCESSING = "slow_processing"


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """A partition that the group reads, and its progress while it was watched.

    None: unknown.
    """

    topic_partition: TopicPartition
    end: int
    lag: int
    arrived: int
    """New records while it was watched."""
    read: int
    """How far the committed offset advanced."""
    member: str | None = None
    """The id of the member that owns it."""
    committed_ms: int | None = None
    fetched_bytes: int | None = None
    waiting_fetches: int | None = None
    """Consumers that have read everything and wait for more."""
    next_batch_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """A group's progress while it was watched for some seconds."""

    group: str
    now_ms: int
    members: dict[str, str]
    """Client ids by member id."""
    partitions: Sequence[PartitionProgress]
    history: Rebalances | None = None
    refused_commits: Sequence[RefusedCommit] = ()
    patience_ms: int = 30_000
    """A committed offset that has not moved for this long is stuck."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The cause of a lag, as a sentence, and what to do about it."""

    cause: Cause
    sentence: str
    advice: str = ""


def why(seen: GroupProgress) -> Explanation:
    lag = sum(each.lag for each in seen.partitions)
    if not lag:
        return Explanation(Cause.NONE, f"{seen.group} has read everything")
    if not seen.members:
        return Explanation(
            Cause.NO_MEMBERS,
            f"{seen.group} has no members: nobody reads its {counted(lag, 'record')}",
            f"start its consumers; if nobody needs it, `penstock group delete {quote(seen.group)}`",
        )
    stuck = [each for each in seen.partitions if is_stuck(each, seen)]
    return (
        _rebalancing(seen)
        or (_fenced(seen) if stuck else None)
        or (_stuck(seen, stuck) if sum(each.lag for each in stuck) >= lag / 2 else None)
        or _slow(seen, lag)
    )


def is_stuck(each: PartitionProgress, seen: GroupProgress) -> bool:
    """Whether the offset has not moved, for at least `patience_ms` if the commit time is known."""
    if not each.lag or each.read:
        return False
    return each.committed_ms is None or seen.now_ms - each.committed_ms >= seen.patience_ms


def _rebalancing(seen: GroupProgress) -> Explanation | None:
    history = seen.history
    if history is None:
        return None
    recent = [each for each in history.rebalances if seen.now_ms - each.ended_ms <= RECENT_MS]
    if len(recent) < LOOP:
        return None
    # The first rebalance of a group is that of its first member.
    reasons = Counter(each.reason for each in recent)
    reason, _ = reasons.most_common(1)[0]
    paused_s = sum(each.duration_ms for each in recent) / 1000
    return Explanation(
        Cause.REBALANCING,
        f"{seen.group} rebalances again and again, {len(recent)} times within five minutes "
        f"({paused_s:.0f} s in all), mostly because of: {reason}",
        "keep its members in: a longer session.timeout.ms and max.poll.interval.ms, fewer records "
        "a poll (max.poll.records), group.instance.id for members that restart; "
        f"`penstock group rebalances {quote(seen.group)}` shows each",
    )


def _fenced(seen: GroupProgress) -> Explanation | None:
    recent = [each for each in seen.refused_commits if seen.now_ms - each.last_ms <= RECENT_MS]
    if not recent:
        return None
    last = recent[-1]
    meaning = (
        "another member has its group.instance.id"
        if last.error == "FENCED_INSTANCE_ID"
        else "the group went on without it"
    )
    return Explanation(
        Cause.FENCED,
        f"commits of client {last.client_id} are refused with {last.error}, "
        f"{counted(last.count, 'time')} so far: {meaning}",
        "give each member its own group.instance.id"
        if last.error == "FENCED_INSTANCE_ID"
        else "have it poll more often than max.poll.interval.ms, or take fewer records a poll; "
        "a member that was removed must join again",
    )


def _stuck(seen: GroupProgress, stuck: Sequence[PartitionProgress]) -> Explanation:
    names = some(sorted(str(each.topic_partition) for each in stuck))
    worst = max(stuck, key=lambda each: each.lag)
    for_s = "" if worst.committed_ms is None else f" for {_since(worst.committed_ms, seen.now_ms)}"
    client = seen.members.get(worst.member or "", "nobody")
    size = worst.next_batch_bytes or 0
    if size > LARGE_BYTES and not worst.waiting_fetches:
        return Explanation(
            Cause.OVERSIZE_RECORD,
            f"client {client} does not get past a batch of {size:,} bytes in "
            f"{worst.topic_partition}: its offset has not moved{for_s}",
            "raise fetch.max.bytes, max.partition.fetch.bytes and receive.message.max.bytes of "
            "the client, or skip the record: `penstock group reset`",
        )
    if worst.waiting_fetches or worst.fetched_bytes:
        return Explanation(
            Cause.STUCK_COMMIT,
            f"client {client} reads {names}, but has not committed{for_s}",
            "commit after processing, or set enable.auto.commit=true; a transaction that stays "
            "open holds offsets back too: `penstock txn list`",
        )
    return Explanation(
        Cause.PAUSED,
        f"client {client} holds {names}, but does not fetch from there, and has not "
        f"committed{for_s}: it is paused, or busy with records that it has",
        "resume the partition; or see what the client does: a thread dump, its log",
    )


def _slow(seen: GroupProgress, lag: int) -> Explanation:
    worst = max(seen.partitions, key=lambda each: each.lag)
    by_member = Counter[str]()
    for each in seen.partitions:
        if each.member is not None:
            by_member[each.member] += each.lag
    if worst.lag >= MOST * lag and is_hot(worst, seen.partitions):
        return Explanation(
            Cause.HOT_PARTITION,
            f"{worst.topic_partition} is hot: it has {worst.lag} of the {counted(lag, 'record')} "
            "of lag, and gets most of the new ones",
            "more members do not help: choose keys that spread, or add partitions",
        )
    if by_member and len(seen.members) > 1:
        slowest, behind = by_member.most_common(1)[0]
        if behind >= MOST * lag:
            return Explanation(
                Cause.SLOW_MEMBER,
                f"client {seen.members.get(slowest, slowest)} is slow: its partitions have "
                f"{behind} of the {lag} records of lag, and the other members keep up",
                "look at that client's machine: CPU, garbage collection, what it calls",
            )
    count, partitions = len(seen.members), len(seen.partitions)
    if count < partitions:
        return Explanation(
            Cause.TOO_FEW_MEMBERS,
            f"{seen.group} has too few members, {count} for {partitions} partitions: {_pace(seen)}",
            f"start up to {partitions - count} more, or more threads",
        )
    return Explanation(
        Cause.SLOW_PROCESSING,
        f"every partition of {seen.group} has a member of its own, and yet {_pace(seen)}",
        "make processing faster, raise max.poll.records and fetch.max.bytes if it waits for "
        "fetches, or add partitions and members",
    )


def is_hot(worst: PartitionProgress, every: Sequence[PartitionProgress]) -> bool:
    """Decides by the records that arrived during the watch; if none did, by all records ever."""
    others = [each for each in every if each is not worst]
    if not others:
        return False
    came, of_others = worst.arrived, sum(each.arrived for each in others)
    if not came + of_others:
        came, of_others = worst.end, sum(each.end for each in others)
    return came >= HOT * of_others / len(others) and came > 0


def _pace(seen: GroupProgress) -> str:
    read, arrived = (
        sum(each.read for each in seen.partitions),
        sum(each.arrived for each in seen.partitions),
    )
    if read > arrived:
        return f"it catches up, {counted(read, 'record')} read while {arrived} came"
    return f"{counted(read, 'record was', 'records were')} read while {arrived} came"


def _since(then_ms: int, now_ms: int) -> str:
    seconds = max(now_ms - then_ms, 0) // 1000
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} minutes"
