"""JoinGroup (key 11, v0-v9): join the next generation of a group; answered when it begins.

Refused: session timeouts outside the broker's limits; assignors that not all members support;
members beyond `group.max.size`; a new member without an id (v4), which gets its id. A group of
the consumer protocol accepts members at once, and assigns partitions itself.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import UNLIMITED_MS, answered
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.member import Joined, ProtocolMetadata
from penstock.coordinator.group.errors import MemberIdRequired
from penstock.errors import KafkaError
from penstock.types import random_uuid
from penstock.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)


def fresh_member_id(request: JoinGroupRequest, ctx: Context) -> str:
    name = request.group_instance_id or ctx.header.client_id or ""
    return f"{name}-{random_uuid(ctx.services.resources.chance)}"


def join_group(
    request: JoinGroupRequest, ctx: Context
) -> JoinGroupResponse | Parked[JoinGroupResponse]:
    client_id = ctx.header.client_id or ""
    pending = ctx.services.coordination.groups.join(
        request.group_id,
        GroupJoin(
            member_id=request.member_id,
            new_member_id="" if request.member_id else fresh_member_id(request, ctx),
            instance_id=request.group_instance_id,
            client_id=client_id,
            client_host=f"/{ctx.peer.host}",
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=tuple(ProtocolMetadata(p.name, p.metadata) for p in request.protocols),
            reason=request.reason or "",
            needs_known_id=ctx.version >= 4,
            may_skip_assignment=ctx.version >= 9,
        ),
    )
    return answered([pending], lambda replies: respond(request, ctx, *replies), ctx, UNLIMITED_MS)


def respond(
    request: JoinGroupRequest, ctx: Context, reply: Joined | KafkaError
) -> JoinGroupResponse:
    if isinstance(reply, KafkaError):
        known = reply.member_id if isinstance(reply, MemberIdRequired) else request.member_id
        return JoinGroupResponse(
            error_code=reply.code,
            member_id=known,
            protocol_name=None if ctx.version >= 7 else "",
        )
    return JoinGroupResponse(
        generation_id=reply.generation,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol or "",
        leader=reply.leader or "",
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=each.id,
                group_instance_id=each.instance_id,
                metadata=each.metadata(reply.protocol),
            )
            for each in reply.members
        ],
    )
