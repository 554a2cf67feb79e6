"""Heartbeat (key 12, v0-v4): a member lives; it hears when it has to join again."""

from penstock.broker.context import Context
from penstock.broker.translate.tickets import answered
from penstock.broker.waiters import Parked
from penstock.coordinator.group.membership import Leaving
from penstock.errors import KafkaError
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(
    request: HeartbeatRequest, ctx: Context
) -> HeartbeatResponse | Parked[HeartbeatResponse]:
    who = Leaving(request.member_id, request.group_instance_id)
    ticket = ctx.services.groups.heartbeat(request.group_id, who, request.generation_id)
    return answered([ticket], lambda replies: respond(*replies), ctx)


def respond(reply: object) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=reply.code if isinstance(reply, KafkaError) else 0)
