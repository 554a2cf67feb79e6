"""StreamsGroupHeartbeat (key 88, v0-v1): join a streams group with a topology, stay, get tasks,
leave (KIP-1071).

Missing internal topics are created before the response, so that a member gets its tasks at once;
Kafka assigns them at a later heartbeat. The first members of a group wait
`group.streams.initial.rebalance.delay.ms` for others, and are asked to send a heartbeat just then.
A member of v1 is asked to describe the topology once (KIP-1331). Refused: members of another epoch,
full groups, other kinds of groups, another topology under the same epoch, static members before v1,
regular expressions.
"""

import asyncio
from collections.abc import Coroutine, Iterable

from msgspec.structs import replace

from penstock.broker.context import Context
from penstock.broker.translate.pending_replies import replied
from penstock.broker.translate.streams_groups import create_internal, not_served, topology_of
from penstock.coordinator.group.consumer.errors import InvalidHeartbeat
from penstock.coordinator.group.streams.endpoints import EndpointPartitions
from penstock.coordinator.group.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatReply
from penstock.coordinator.group.streams.member import StreamsEndpoint, TaskPosition
from penstock.coordinator.group.streams.task import TaskId, Tasks, by_subtopology, tasks_of
from penstock.coordinator.group.streams.topology import (
    GroupStatus,
    StatusCode,
    StreamsInternalTopic,
)
from penstock.coordinator.result import PendingReply
from penstock.errors import KafkaError
from penstock.wire.messages.streams_group_heartbeat import (
    Endpoint as WireEndpoint,
)
from penstock.wire.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TaskOffset,
    TopicPartition,
)

CREATION_S = 3.0
"""How long a heartbeat waits for internal topics."""
LOOK_S = 0.02
"""The pause between checks for the new topics: another broker may be the controller."""


def streams_group_heartbeat(
    request: StreamsGroupHeartbeatRequest, ctx: Context
) -> StreamsGroupHeartbeatResponse | Coroutine[None, None, StreamsGroupHeartbeatResponse]:
    refused = not_served(ctx)
    if refused is not None:
        return respond(refused)
    if not request.group_id:
        return respond(InvalidHeartbeat("GroupId can't be empty."))
    heartbeat = heartbeat_of(request, ctx)
    groups = ctx.services.coordination.groups
    pending = groups.streams_heartbeat(request.group_id, heartbeat)
    reply = groups.runtime.reply(pending)
    if reply is not None and (isinstance(reply, KafkaError) or not reply.missing):
        return respond(reply)
    return later(request.group_id, heartbeat, pending, ctx)


def heartbeat_of(request: StreamsGroupHeartbeatRequest, ctx: Context) -> StreamsHeartbeat:
    endpoint, tags = request.user_endpoint, request.client_tags

    def owned(listed: list[TaskIds] | None) -> Tasks | None:
        return None if listed is None else tasks_of(listed)

    return StreamsHeartbeat(
        member_id=request.member_id,
        epoch=request.member_epoch,
        endpoint_epoch=request.endpoint_information_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=ctx.header.client_id or "",
        client_host=f"/{ctx.peer.host}",
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topology=None if request.topology is None else topology_of(request.topology),
        active=owned(request.active_tasks),
        standby=owned(request.standby_tasks),
        warmup=owned(request.warmup_tasks),
        process_id=request.process_id,
        endpoint=None if endpoint is None else StreamsEndpoint(endpoint.host, endpoint.port),
        tags=None if tags is None else tuple((each.key, each.value) for each in tags),
        offsets=positions(request.task_offsets),
        end_offsets=positions(request.task_end_offsets),
        shuts_down=request.shutdown_application,
        version=ctx.header.version,
    )


def positions(listed: list[TaskOffset] | None) -> tuple[TaskPosition, ...] | None:
    if listed is None:
        return None
    return tuple(
        TaskPosition(TaskId(each.subtopology_id, each.partition), each.offset) for each in listed
    )


async def later(
    group: str,
    heartbeat: StreamsHeartbeat,
    pending: PendingReply[StreamsHeartbeatReply],
    ctx: Context,
) -> StreamsGroupHeartbeatResponse:
    try:
        reply = await replied(pending, ctx)
        if reply.missing:
            reply = await with_internal_topics(group, heartbeat, reply, ctx)
    except KafkaError as error:
        return respond(error)
    return respond(reply)


async def with_internal_topics(
    group: str, heartbeat: StreamsHeartbeat, first: StreamsHeartbeatReply, ctx: Context
) -> StreamsHeartbeatReply:
    """The reply once the internal topics exist; otherwise the first reply, with the reason."""
    try:
        async with asyncio.timeout(CREATION_S):
            why = await create_internal(first.missing, ctx)
            while not why and not is_known(first.missing, ctx):
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        why = f"Creation of internal topics is not finished after {CREATION_S:.0f} s."
    except KafkaError as error:
        why = f"Creation of internal topics failed: {error}"
    if why:
        return replace(first, statuses=tuple(with_reason(each, why) for each in first.statuses))
    again = replace(heartbeat, epoch=first.epoch, topology=None)
    reply = await replied(ctx.services.coordination.groups.streams_heartbeat(group, again), ctx)
    # The first reply may have fields that the second does not repeat.
    return replace(
        reply,
        assignment=first.assignment if reply.assignment is None else reply.assignment,
        endpoints=first.endpoints if reply.endpoints is None else reply.endpoints,
        describes_topology=first.describes_topology or reply.describes_topology,
    )


def is_known(topics: Iterable[StreamsInternalTopic], ctx: Context) -> bool:
    known = ctx.services.cluster.image.topics
    return all(each.name in known for each in topics)


def with_reason(status: GroupStatus, why: str) -> GroupStatus:
    if status.code is not StatusCode.MISSING_INTERNAL_TOPICS:
        return status
    return GroupStatus(status.code, f"{status.detail}; {why}")


def respond(reply: StreamsHeartbeatReply | KafkaError) -> StreamsGroupHeartbeatResponse:
    if isinstance(reply, KafkaError):
        return StreamsGroupHeartbeatResponse(error_code=reply.code, error_message=str(reply))
    assigned, endpoints = reply.assignment, reply.endpoints
    return StreamsGroupHeartbeatResponse(
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval_ms=reply.interval_ms,
        status=[Status(each.code, each.detail) for each in reply.statuses],
        active_tasks=None if assigned is None else tasks(assigned.active),
        standby_tasks=None if assigned is None else tasks(assigned.standby),
        warmup_tasks=None if assigned is None else tasks(assigned.warmup),
        topology_description_required=reply.describes_topology,
        endpoint_information_epoch=reply.endpoint_epoch,
        partitions_by_user_endpoint=None
        if endpoints is None
        else [partitions_at(each) for each in endpoints],
    )


def tasks(assigned: Tasks) -> list[TaskIds]:
    return [TaskIds(*each) for each in by_subtopology(assigned)]


def partitions_at(each: EndpointPartitions) -> EndpointToPartitions:
    return EndpointToPartitions(
        WireEndpoint(*each.endpoint),
        [TopicPartition(*topic) for topic in each.active.items()],
        [TopicPartition(*topic) for topic in each.standby.items()],
    )
