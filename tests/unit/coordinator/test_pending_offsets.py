"""Expiry of offsets and groups, and deletion of groups, while a transaction is open."""

import pytest

from penstock.config.group import GroupConfig
from penstock.coordinator.group.offsets import CommittedOffset
from penstock.coordinator.group.operation.group import delete
from penstock.coordinator.group.records import ClassicGroupRecord, GroupShardRecord, OffsetRecord
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.result import Now, PendingReply

OLD = CommittedOffset(7, commit_ms=0)
HELD = OffsetRecord("g", "t", 1, CommittedOffset(9))
LATE = Now(wall_ms=10**12, steady_ms=10**9)


def shard(*held: GroupShardRecord) -> GroupShard:
    """A group without members that has old offsets in t-0 and t-1."""
    made = GroupShard(GroupConfig(), pending_records=lambda: held)
    for partition in (0, 1):
        made.replay(OffsetRecord("g", "t", partition, OLD))
    for each in held:
        made.replay_pending(each)
    return made


def test_expired_offsets_are_removed_together_with_their_group() -> None:
    assert shard().expire(LATE).records == (
        OffsetRecord("g", "t", 0, None),
        OffsetRecord("g", "t", 1, None),
        ClassicGroupRecord("g", None),
    )


def test_offsets_in_an_open_transaction_and_their_group_do_not_expire() -> None:
    assert shard(HELD).expire(LATE).records == (OffsetRecord("g", "t", 0, None),)


def test_a_group_with_offsets_only_in_an_open_transaction_does_not_expire() -> None:
    other = OffsetRecord("h", "t", 0, CommittedOffset(1))
    made = shard(other)
    assert "h" in made.classic_groups
    assert ClassicGroupRecord("h", None) not in made.expire(LATE).records


@pytest.mark.parametrize("held", [(), (HELD,), (OffsetRecord("g", "t", 5, OLD),)])
def test_a_deleted_group_gets_a_tombstone_for_each_offset_pending_or_not(
    held: tuple[GroupShardRecord, ...],
) -> None:
    made = shard(*held)
    partitions = {0, 1} | {each.partition for each in held if isinstance(each, OffsetRecord)}
    assert delete(made, PendingReply(0), "g").records == (
        *(OffsetRecord("g", "t", each, None) for each in sorted(partitions)),
        ClassicGroupRecord("g", None),
    )
