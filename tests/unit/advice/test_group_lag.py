"""Why a group lags: each cause, by the observed state of the group."""

from dataclasses import replace

import pytest

from penstock.advice.group_lag import Cause, GroupProgress, PartitionProgress, why
from penstock.coordinator.group.rebalance_log import Rebalance, Rebalances
from penstock.coordinator.group.refused_commits import EACH, GROUPS, RefusedCommit, RefusedCommits
from penstock.errors import ErrorCode
from penstock.types import TopicPartition

NOW = 1_000_000
LONG_AGO = NOW - 600_000


def partition(
    index: int, lag: int, *, read: int = 10, arrived: int = 10, member: str = "m0", **more: int
) -> PartitionProgress:
    return PartitionProgress(
        TopicPartition("t", index), 1000, lag, arrived, read, member=member, **more
    )


def group(*partitions: PartitionProgress, members: int = 1) -> GroupProgress:
    clients = {f"m{number}": f"client-{number}" for number in range(members)}
    return GroupProgress("g", NOW, clients, partitions)


def rebalances(count: int, ended_ms: int = NOW - 1000) -> Rebalances:
    one = Rebalance(1, "member x left: max.poll.interval.ms exceeded", 2, 4000, ended_ms)
    return Rebalances("g", (one,) * count, None)


STUCK = partition(0, 500, read=0, committed_ms=LONG_AGO, fetched_bytes=0, waiting_fetches=0)
FINE = partition(1, 0)


@pytest.mark.parametrize(
    ("seen", "cause", "says"),
    [
        (group(FINE), Cause.NONE, "read everything"),
        (group(partition(0, 5), members=0), Cause.NO_MEMBERS, "5 records"),
        (
            group(partition(0, 500), partition(1, 400), partition(2, 450)),
            Cause.TOO_FEW_MEMBERS,
            "1 for 3 partitions",
        ),
        (
            group(
                partition(0, 900, arrived=100),
                partition(1, 10, arrived=5, member="m1"),
                members=2,
            ),
            Cause.HOT_PARTITION,
            "t-0 is hot",
        ),
        (
            group(
                partition(0, 900, arrived=0, read=1),
                partition(1, 10, arrived=0, member="m1"),
                members=2,
            ),
            Cause.SLOW_MEMBER,
            "client-0 is slow",
        ),
        (
            replace(group(STUCK, FINE), history=rebalances(4)),
            Cause.REBALANCING,
            "4 times within five minutes (16 s in all), mostly because of: member x left",
        ),
        (group(replace(STUCK, waiting_fetches=1), FINE), Cause.STUCK_COMMIT, "for 10 minutes"),
        (group(replace(STUCK, fetched_bytes=99), FINE), Cause.STUCK_COMMIT, "reads t-0"),
        (group(STUCK, FINE), Cause.PAUSED, "client-0 holds t-0"),
        (
            group(replace(STUCK, next_batch_bytes=5 << 20, fetched_bytes=9 << 20), FINE),
            Cause.OVERSIZE_RECORD,
            "5,242,880 bytes",
        ),
        (
            replace(
                group(STUCK, FINE),
                refused_commits=[RefusedCommit("c9", "FENCED_INSTANCE_ID", 7, NOW - 1000)],
            ),
            Cause.FENCED,
            "another member has its group.instance.id",
        ),
        (group(partition(0, 900, read=3)), Cause.SLOW_PROCESSING, "3 records were read while 10"),
    ],
)
def test_the_cause_is_named(seen: GroupProgress, cause: Cause, says: str) -> None:
    found = why(seen)
    assert found.cause is cause
    assert says in found.sentence
    assert found.advice or cause is Cause.NONE


def test_an_offset_that_moved_a_moment_ago_is_not_stuck() -> None:
    seen = group(replace(STUCK, committed_ms=NOW - 5000), partition(1, 100))
    assert why(seen).cause is Cause.TOO_FEW_MEMBERS


def test_old_rebalances_and_refused_commits_are_not_the_cause() -> None:
    seen = replace(
        group(STUCK, FINE),
        history=rebalances(9, ended_ms=NOW - 3_600_000),
        refused_commits=[RefusedCommit("c9", "UNKNOWN_MEMBER_ID", 7, NOW - 3_600_000)],
    )
    assert why(seen).cause is Cause.PAUSED


def test_refused_commits_are_counted_by_client_in_bounded_memory() -> None:
    refused = RefusedCommits()
    refused.add("g", "c", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1)
    assert refused.of("g") == ()
    refused.add("g", "c", ErrorCode.UNKNOWN_MEMBER_ID, 1)
    refused.add("g", "c", ErrorCode.ILLEGAL_GENERATION, 2)
    assert refused.of("g") == (RefusedCommit("c", "ILLEGAL_GENERATION", 2, 2),)
    for number in range(EACH + 5):
        refused.add("many", f"c{number}", ErrorCode.UNKNOWN_MEMBER_ID, 3)
    assert len(refused.of("many")) == EACH
    for number in range(GROUPS):
        refused.add(f"g{number}", "c", ErrorCode.UNKNOWN_MEMBER_ID, 3)
    assert refused.of("g") == refused.of("many") == ()


def test_the_group_name_is_quoted_in_a_shell_command() -> None:
    """Any client that may join a group chooses its name."""
    found = why(replace(group(partition(0, 5), members=0), group="my group; reboot"))
    assert "`penstock group delete 'my group; reboot'`" in found.advice
