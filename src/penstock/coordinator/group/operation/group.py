"""Operations of administrators: describe and delete groups."""

from collections.abc import Iterable

from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.errors import GroupIdNotFound, NonEmptyGroup
from penstock.coordinator.group.records import ClassicGroupRecord, GroupShardRecord, OffsetRecord
from penstock.coordinator.group.result import GroupResult
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.share.group import ShareGroup
from penstock.coordinator.group.streams.group import StreamsGroup
from penstock.coordinator.result import CoordinatorResult, EmptyReply, PendingReply, answer


def describe(shard: GroupShard, pending: PendingReply[ClassicGroup], group: str) -> GroupResult:
    return CoordinatorResult(answers=(answer(pending, shard.classic(group)),), reads_state=True)


def describe_consumer(
    shard: GroupShard, pending: PendingReply[ConsumerGroup], group: str
) -> GroupResult:
    known = shard.consumer_groups.get(group)
    if known is None:
        is_other = shard.is_other_than(shard.consumer_groups, group)
        why = "is not a consumer group." if is_other else "not found."
        raise GroupIdNotFound(f"Group {group} {why}")
    return CoordinatorResult(answers=(answer(pending, known),), reads_state=True)


def delete(shard: GroupShard, pending: PendingReply[EmptyReply], group: str) -> GroupResult:
    consumer = _with_members(shard, group)
    if consumer.members if consumer else shard.classic(group).state is not ClassicGroupState.EMPTY:
        raise NonEmptyGroup(f"{group} has members")
    records = tuple(_tombstones(shard, group))
    return CoordinatorResult(records, (answer(pending, EmptyReply()),), may_split=True)


def _with_members(
    shard: GroupShard, group: str
) -> ConsumerGroup | ShareGroup | StreamsGroup | None:
    """The group of that name if it is not classic."""
    return (
        shard.consumer_groups.get(group)
        or shard.share_groups.get(group)
        or shard.streams_groups.get(group)
    )


def _tombstones(shard: GroupShard, group: str) -> Iterable[GroupShardRecord]:
    """The offsets' tombstones come first: offsets without a group would make it a simple group."""
    for topic_partition in sorted(shard.offsets_of(group)):
        yield OffsetRecord(group, *topic_partition, None)
    consumer = _with_members(shard, group)
    yield from [ClassicGroupRecord(group, None)] if consumer is None else consumer.tombstones()
