"""Heartbeat (key 12, v0-v4): keeps a member alive, and tells it when to join again."""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered
from penstock.errors import KafkaError
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(
    request: HeartbeatRequest, ctx: Context
) -> HeartbeatResponse | Parked[HeartbeatResponse]:
    pending = ctx.services.coordination.groups.heartbeat(
        request.group_id, request.member_id, request.generation_id, request.group_instance_id
    )
    return answered([pending], lambda replies: respond(*replies), ctx)


def respond(reply: object) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=reply.code if isinstance(reply, KafkaError) else 0)
