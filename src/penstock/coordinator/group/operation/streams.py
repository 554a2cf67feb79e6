"""Operations on streams groups."""

from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.errors import GroupIdNotFound, UnknownMemberId
from penstock.coordinator.group.records import ClassicGroupRecord
from penstock.coordinator.group.result import GroupResult, streams_result
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.streams import heartbeat as heartbeats
from penstock.coordinator.group.streams.description import put_description
from penstock.coordinator.group.streams.draft import new_group
from penstock.coordinator.group.streams.group import StreamsGroup
from penstock.coordinator.group.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatReply
from penstock.coordinator.group.streams.migration import upgrade as upgrades
from penstock.coordinator.group.streams.migration.process import replace_process
from penstock.coordinator.result import CoordinatorResult, EmptyReply, Now, PendingReply, answer
from penstock.wire.messages.streams_group_topology_description_update import TopologyDescription


def heartbeat(
    shard: GroupShard,
    now: Now,
    pending: PendingReply[StreamsHeartbeatReply],
    group: str,
    request: StreamsHeartbeat,
) -> GroupResult:
    """Process a heartbeat; a member that joins a classic group turns it into a streams group.

    The group keeps its offsets. It also keeps its classic members, while the instances of an
    application are restarted one by one.
    """
    heartbeats.check(request)
    known, classic = shard.streams_groups.get(group), shard.classic_groups.get(group)
    if known is None:
        joins = request.epoch == heartbeats.JOIN_EPOCH
        others = shard.streams_groups if classic is None else shard.classic_groups
        if (classic is not None and not joins) or shard.is_other_than(others, group):
            raise GroupIdNotFound(f"Group {group} is not a streams group.")
        if not joins:
            kind = "Group" if request.epoch < heartbeats.JOIN_EPOCH else "Streams group"
            raise GroupIdNotFound(f"{kind} {group} not found.")
        known = new_group(group)
    draft = shard.streams_draft(known, now)
    if classic is not None and classic.state is not ClassicGroupState.EMPTY:
        upgrades.check(classic, shard.config)
        assert request.topology is not None, "a member joins with one"
        upgrades.upgrade(draft, classic, request.topology)
    if request.epoch == heartbeats.JOIN_EPOCH and request.process_id is not None:
        replace_process(draft, request.process_id, was_classic=True)
    reply = heartbeats.heartbeat(draft, request)
    replaced = () if classic is None else (ClassicGroupRecord(group, None),)
    return streams_result(draft, (answer(pending, reply),), replaced)


def describe_topology(
    shard: GroupShard,
    now: Now,
    pending: PendingReply[EmptyReply],
    group: str,
    member_id: str,
    epoch: int,
    description: TopologyDescription,
) -> GroupResult:
    known = shard.streams_groups.get(group)
    if known is None:
        raise UnknownMemberId(f"Group {group} not found.")
    draft = shard.streams_draft(known, now)
    put_description(draft, member_id, epoch, description)
    return streams_result(draft, (answer(pending, EmptyReply()),))


def describe(shard: GroupShard, pending: PendingReply[StreamsGroup], group: str) -> GroupResult:
    known = shard.streams_groups.get(group)
    if known is None:
        is_other = shard.is_other_than(shard.streams_groups, group)
        why = "is not a streams group." if is_other else "not found."
        raise GroupIdNotFound(f"Group {group} {why}")
    return CoordinatorResult(answers=(answer(pending, known),), reads_state=True)
