"""ShareGroupHeartbeat (key 76, v1): join a share group, stay, get partitions, leave (KIP-932).

Refused: members of another epoch, full groups, ids of other kinds of groups. The state of
partitions that are new to the group is initialized first. A joining member waits for that, so that
it gets its partitions at once; Kafka assigns them at its next heartbeat.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress

from msgspec.structs import replace

from penstock.broker.context import Context
from penstock.broker.translate.pending_replies import replied
from penstock.broker.translate.share_groups import initialize, lock_of
from penstock.broker.translate.share_requests import not_served
from penstock.coordinator.group.consumer.errors import InvalidHeartbeat
from penstock.coordinator.group.consumer.records import by_topic
from penstock.coordinator.group.share.heartbeat import ShareHeartbeat, ShareHeartbeatReply
from penstock.coordinator.result import PendingReply
from penstock.errors import KafkaError
from penstock.wire.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

STATE_S = 3.0
"""How long a heartbeat waits for partitions to be initialized."""


def share_group_heartbeat(
    request: ShareGroupHeartbeatRequest, ctx: Context
) -> ShareGroupHeartbeatResponse | Coroutine[None, None, ShareGroupHeartbeatResponse]:
    refused = not_served(ctx)
    if refused is not None:
        return respond(refused)
    if not request.group_id:
        return respond(InvalidHeartbeat("GroupId can't be empty."))
    names = request.subscribed_topic_names
    heartbeat = ShareHeartbeat(
        member_id=request.member_id,
        epoch=request.member_epoch,
        rack_id=request.rack_id,
        client_id=ctx.header.client_id or "",
        client_host=f"/{ctx.peer.host}",
        topics=None if names is None else frozenset(names),
    )
    groups = ctx.services.coordination.groups
    pending = groups.share_heartbeat(request.group_id, heartbeat)
    reply = groups.runtime.reply(pending)
    if reply is not None and (isinstance(reply, KafkaError) or not reply.without_state):
        return respond(reply)
    return later(request.group_id, heartbeat, pending, ctx)


async def later(
    group: str, heartbeat: ShareHeartbeat, pending: PendingReply[ShareHeartbeatReply], ctx: Context
) -> ShareGroupHeartbeatResponse:
    try:
        reply = await replied(pending, ctx)
        if reply.without_state:
            reply = await with_state(group, heartbeat, reply, ctx)
    except KafkaError as error:
        return respond(error)
    return respond(reply)


async def with_state(
    group: str, heartbeat: ShareHeartbeat, first: ShareHeartbeatReply, ctx: Context
) -> ShareHeartbeatReply:
    """The reply once all partitions of the group have state, or as many as time allows."""
    groups, reply = ctx.services.coordination.groups, first

    async def beat() -> ShareHeartbeatReply:
        again = replace(heartbeat, epoch=reply.epoch)
        found = await replied(groups.share_heartbeat(group, again), ctx)
        # The assignment may have been in an earlier reply, and is not repeated.
        assigned = reply.assignment if found.assignment is None else found.assignment
        return replace(found, assignment=assigned)

    until = asyncio.get_running_loop().time() + STATE_S
    lock = lock_of(group, ctx)
    try:
        async with asyncio.timeout_at(until):
            await lock.acquire()
    except TimeoutError:
        return first
    try:
        reply = await beat()
        if reply.without_state:
            with suppress(TimeoutError):  # the next heartbeat continues
                async with asyncio.timeout_at(until):
                    await initialize(group, reply.without_state, ctx)
            # Outside of the timeout: if this reply were lost, its assignment would not be repeated.
            reply = await beat()
    finally:
        lock.release()
    return reply


def respond(reply: ShareHeartbeatReply | KafkaError) -> ShareGroupHeartbeatResponse:
    if isinstance(reply, KafkaError):
        return ShareGroupHeartbeatResponse(error_code=reply.code, error_message=str(reply))
    assigned = reply.assignment
    return ShareGroupHeartbeatResponse(
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval_ms=reply.interval_ms,
        assignment=None
        if assigned is None
        else Assignment([TopicPartitions(*each) for each in by_topic(assigned)]),
    )
