"""StreamsGroupDescribe (key 89, v0-v1): a streams group, its topology, members and tasks.

With v1, also the application's own description of the topology, if a member has sent it (KIP-1331).
Refused: groups that do not exist or are of another kind.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.described_groups import described_groups
from penstock.broker.translate.operations import NOT_ASKED, group_operations
from penstock.broker.translate.streams_groups import not_served
from penstock.coordinator.group.errors import InvalidGroupId
from penstock.coordinator.group.streams.group import StreamsGroup
from penstock.coordinator.group.streams.member import StreamsGroupMember, TaskPosition
from penstock.coordinator.group.streams.records import Topology as StoredTopology
from penstock.coordinator.group.streams.task import NOTHING, TaskAssignment, by_subtopology
from penstock.errors import KafkaError
from penstock.wire.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from penstock.wire.messages.streams_group_describe import (
    TopologyDescription as DescribedTopology,
)
from penstock.wire.messages.streams_group_describe import (
    TopologyDescriptionGlobalStore as GlobalStore,
)
from penstock.wire.messages.streams_group_describe import (
    TopologyDescriptionNode as DescribedNode,
)
from penstock.wire.messages.streams_group_describe import (
    TopologyDescriptionSubtopology as DescribedSubtopology,
)
from penstock.wire.messages.streams_group_topology_description_update import (
    TopologyDescription,
    TopologyDescriptionNode,
)
from penstock.wire.messages.streams_group_topology_value import TopicInfo as StoredTopic

NOT_REQUESTED, NOT_STORED, AVAILABLE = 0, 1, 3
"""The status of a topology's description."""


def streams_group_describe(
    request: StreamsGroupDescribeRequest, ctx: Context
) -> StreamsGroupDescribeResponse | Parked[StreamsGroupDescribeResponse]:
    tells, describes = request.include_authorized_operations, request.include_topology_description
    return described_groups(
        request.group_ids,
        ctx.services.coordination.groups.describe_streams,
        ctx,
        refused=not_served(ctx),
        known=lambda group: described(
            group, ctx, tells_operations=tells, describes_topology=describes
        ),
        unknown=unknown,
        respond=lambda groups: StreamsGroupDescribeResponse(groups=groups),
    )


def unknown(name: str, error: KafkaError) -> DescribedGroup:
    text = None if isinstance(error, InvalidGroupId) else str(error)  # as in Kafka
    return DescribedGroup(group_id=name, error_code=error.code, error_message=text)


def described(
    group: StreamsGroup, ctx: Context, *, tells_operations: bool, describes_topology: bool
) -> DescribedGroup:
    coordination = ctx.services.coordination
    wanted = ctx.services.cluster.streams_group_config(group.id).streams_assignor_name
    found = description(group.description) if describes_topology else None
    status = NOT_REQUESTED
    if describes_topology:
        status = NOT_STORED if found is None else AVAILABLE
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        topology=None if group.topology is None else topology(group.topology),
        members=[
            member(each, group.target.get(each.id, NOTHING)) for each in group.members.values()
        ],
        authorized_operations=group_operations(ctx, group.id) if tells_operations else NOT_ASKED,
        topology_description=found,
        topology_description_status=status,
        assignor_name=coordination.groups.task_assignors.chosen(wanted),
    )


def description(stored: TopologyDescription | None) -> DescribedTopology | None:
    """The same fields in another message."""
    if stored is None:
        return None
    return DescribedTopology(
        [
            DescribedSubtopology(each.subtopology_id, [node(one) for one in each.nodes])
            for each in stored.subtopologies
        ],
        [GlobalStore(node(each.source), node(each.processor)) for each in stored.global_stores],
    )


def node(stored: TopologyDescriptionNode) -> DescribedNode:
    return DescribedNode(
        stored.name,
        stored.node_type,
        stored.source_topics,
        stored.sink_topic,
        stored.stores,
        stored.successors,
    )


def topology(stored: StoredTopology) -> Topology:
    return Topology(
        stored.epoch,
        [
            Subtopology(
                each.subtopology_id,
                each.source_topics,
                each.repartition_sink_topics,
                [topic_info(info) for info in each.state_changelog_topics],
                [topic_info(info) for info in each.repartition_source_topics],
            )
            for each in stored.subtopologies
        ],
    )


def topic_info(info: StoredTopic) -> TopicInfo:
    configs = [KeyValue(each.key, each.value) for each in info.topic_configs]
    return TopicInfo(info.name, info.partitions, info.replication_factor, configs)


def member(each: StreamsGroupMember, target: TaskAssignment) -> Member:
    return Member(
        member_id=each.id,
        member_epoch=each.epoch,
        instance_id=each.instance_id,
        rack_id=each.rack_id,
        client_id=each.client_id,
        client_host=each.client_host,
        topology_epoch=each.topology_epoch,
        process_id=each.process_id,
        user_endpoint=None if each.endpoint is None else Endpoint(*each.endpoint),
        client_tags=[KeyValue(*pair) for pair in each.tags],
        task_offsets=[position(one) for one in each.offsets],
        task_end_offsets=[position(one) for one in each.end_offsets],
        assignment=assignment(each.assigned),
        target_assignment=assignment(target),
        is_classic=each.is_classic,
    )


def position(one: TaskPosition) -> TaskOffset:
    return TaskOffset(one.task.subtopology, one.task.partition, one.offset)


def assignment(tasks: TaskAssignment) -> Assignment:
    active, standby, warmup = (
        [TaskIds(*each) for each in by_subtopology(role)]
        for role in (tasks.active, tasks.standby, tasks.warmup)
    )
    return Assignment(active, standby, warmup)
