"""Operations of administrators: describe and delete groups."""

from collections.abc import Iterable

from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.errors import GroupIdNotFound, NonEmptyGroup
from penstock.coordinator.group.records import ClassicGroupRecord, GroupShardRecord, OffsetRecord
from penstock.coordinator.group.result import GroupResult
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.result import CoordinatorResult, EmptyReply, PendingReply, answer


def describe(shard: GroupShard, pending: PendingReply[ClassicGroup], group: str) -> GroupResult:
    return CoordinatorResult(answers=(answer(pending, shard.classic(group)),), reads_state=True)


def describe_consumer(
    shard: GroupShard, pending: PendingReply[ConsumerGroup], group: str
) -> GroupResult:
    known = shard.consumer_groups.get(group)
    if known is None:
        why = "is not a consumer group." if group in shard.classic_groups else "not found."
        raise GroupIdNotFound(f"Group {group} {why}")
    return CoordinatorResult(answers=(answer(pending, known),), reads_state=True)


def delete(shard: GroupShard, pending: PendingReply[EmptyReply], group: str) -> GroupResult:
    consumer = shard.consumer_groups.get(group)
    if consumer.members if consumer else shard.classic(group).state is not ClassicGroupState.EMPTY:
        raise NonEmptyGroup(f"{group} has members")
    records = tuple(_tombstones(shard, group))
    return CoordinatorResult(records, (answer(pending, EmptyReply()),), may_split=True)


def _tombstones(shard: GroupShard, group: str) -> Iterable[GroupShardRecord]:
    """Offsets first: left behind by their group, they would make a simple group."""
    for topic_partition in sorted(shard.offsets_of(group)):
        yield OffsetRecord(group, *topic_partition, None)
    consumer = shard.consumer_groups.get(group)
    yield from [ClassicGroupRecord(group, None)] if consumer is None else consumer.tombstones()
