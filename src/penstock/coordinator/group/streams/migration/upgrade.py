"""A classic group of Kafka Streams becomes a streams group and keeps its members' tasks."""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic.embedded_protocol import (
    CONSUMER,
    read_assignment,
    read_subscription,
)
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.member import ClassicGroupMember
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.consumer.member import ClassicMemberSettings
from penstock.coordinator.group.errors import GroupIdNotFound
from penstock.coordinator.group.migration.upgrade import ALLOWED
from penstock.coordinator.group.streams.draft import StreamsGroupDraft
from penstock.coordinator.group.streams.errors import InvalidTopology, RebalancesClassically
from penstock.coordinator.group.streams.member import NO_TOPOLOGY, StreamsGroupMember
from penstock.coordinator.group.streams.migration.tasks import is_numbered, tasks_with
from penstock.coordinator.group.streams.migration.user_data import MemberUserData, read_user_data
from penstock.coordinator.group.streams.records import (
    Topology,
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from penstock.coordinator.group.streams.task import NO_TASKS, TaskAssignment, Tasks
from penstock.coordinator.group.streams.topology import configured, source_topics
from penstock.errors import ProtocolError
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

STREAM = "stream"
"""The strategy that members of Kafka Streams name in the classic protocol."""


class StreamsSubscription(NamedTuple):
    """The subscription of a classic member, and its decoded user data."""

    subscription: ConsumerProtocolSubscription
    user_data: MemberUserData


def read_streams(metadata: bytes) -> StreamsSubscription:
    """Decode a member's metadata; `ProtocolError` if it is not a subscription of Kafka Streams."""
    subscription = read_subscription(metadata)
    return StreamsSubscription(subscription, read_user_data(subscription.user_data))


def check(classic: ClassicGroup, config: GroupConfig) -> None:
    """Refuse a group that must stay classic, or that cannot become a streams group just now."""
    name = classic.id
    members = classic.members.values()
    if classic.protocol_type != CONSUMER or not all(each.metadata(STREAM) for each in members):
        raise GroupIdNotFound(f"Group {name} is not a streams group.")
    if config.group_consumer_migration_policy not in ALLOWED:
        raise GroupIdNotFound(
            f"the members of {name} use the classic protocol, and group.consumer.migration.policy "
            "does not allow an upgrade"
        )
    if any(each.instance_id is not None for each in members):
        raise GroupIdNotFound(f"{name} has static members: it moves while it is stopped")
    if classic.state is not ClassicGroupState.STABLE or classic.pending_sync_members:
        # The owners of tasks are unknown until the rebalance ends; clients retry.
        raise RebalancesClassically(f"{name} rebalances in the classic protocol")


def upgrade(draft: StreamsGroupDraft, classic: ClassicGroup, topology: Topology) -> None:
    """Write the members and their tasks into the new group, with the topology of its first member
    of the streams protocol.
    """
    name, topics = draft.group.id, draft.context.topics
    draft.put_topology(topology)
    tasks = _checked_tasks(draft, classic, topology)
    epoch = max(classic.generation, draft.group.epoch)
    members = list(_members(classic, topology, tasks, epoch))
    for member in members:
        draft.write(member_record(name, member))
    metadata_hash = draft.group.hash_of(topology, topics)
    configs = draft.context.assignment_configs
    draft.write(epoch_record(name, epoch, metadata_hash, topology.epoch, configs))
    for member in members:
        draft.write(target_record(name, member.id, member.assigned))
    draft.write(target_epoch_record(name, epoch, draft.context.now.wall_ms))
    for member in members:
        draft.write(current_record(name, member))
        draft.change_member(member.id, classic=member.classic)
        draft.renew_session(member.id)


def _checked_tasks(draft: StreamsGroupDraft, classic: ClassicGroup, topology: Topology) -> Tasks:
    """All tasks, if the running application has the topology that the new member sent."""
    found = configured(topology, draft.context.topics)
    why = "" if found.status is None else found.status.detail
    if not is_numbered(topology):
        why = "the classic protocol has numbers for subtopologies"
    if not why and classic.subscribed_topics != source_topics(topology):
        why = "its members read other topics"
    if why:
        raise InvalidTopology(
            f"The application {classic.id} runs in the classic protocol with another topology: "
            f"{why}"
        )
    return frozenset(found.tasks)


def _members(
    classic: ClassicGroup, topology: Topology, tasks: Tasks, epoch: int
) -> Iterator[StreamsGroupMember]:
    """Every member with those of its tasks that exist.

    A cooperative member may still be revoking tasks that it owned before the last rebalance. They
    count as its own until it joins again, unless another member has them. Otherwise two members
    would process them.
    """
    read, assigned = {}, dict[str, Tasks]()
    for member in classic.members.values():
        try:
            read[member.id] = read_streams(member.metadata(STREAM))
            assignment = read_assignment(member.assignment).assigned_partitions
        except ProtocolError as error:
            raise GroupIdNotFound(f"{member.id} of {classic.id}: {error}") from None
        assigned[member.id] = tasks_with(assignment, topology) & tasks
    taken = NO_TASKS.union(*assigned.values())
    if sum(map(len, assigned.values())) != len(taken):
        raise GroupIdNotFound(f"two members of {classic.id} have the same task")
    for member in classic.members.values():
        stated = read[member.id]
        claimed = (tasks_with(stated.subscription.owned_partitions, topology) & tasks) - taken
        taken |= claimed
        yield _member(member, stated, assigned[member.id] | claimed, epoch)


def _member(
    member: ClassicGroupMember, stated: StreamsSubscription, tasks: Tasks, epoch: int
) -> StreamsGroupMember:
    """The member, in the epoch that continues the group's generation."""
    return StreamsGroupMember(
        id=member.id,
        rack_id=stated.subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=NO_TOPOLOGY,
        process_id=stated.user_data.process_id,
        endpoint=stated.user_data.endpoint,
        epoch=epoch,
        previous_epoch=epoch,
        assigned=TaskAssignment(tasks),
        epochs=dict.fromkeys(tasks, epoch),
        classic=ClassicMemberSettings(member.session_timeout_ms, member.protocols),
    )
