"""SyncGroup (key 14, v0-v5): a member's assignment, once the group's leader has sent it.

Refused: members of another generation; a protocol other than the chosen one, or none (v5).
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import UNLIMITED_MS, answered
from penstock.coordinator.group.classic.member import Synced
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.errors import InconsistentGroupProtocol
from penstock.errors import KafkaError
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync_group(
    request: SyncGroupRequest, ctx: Context
) -> SyncGroupResponse | Parked[SyncGroupResponse]:
    if ctx.version >= 5 and None in (request.protocol_type, request.protocol_name):
        return respond(
            InconsistentGroupProtocol("a sync must name the protocol type and the strategy")
        )
    pending = ctx.services.coordination.groups.sync(
        request.group_id,
        GroupSync(
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id,
            protocol_type=request.protocol_type,
            protocol=request.protocol_name,
            assignments={each.member_id: each.assignment for each in request.assignments},
        ),
    )
    return answered([pending], lambda replies: respond(*replies), ctx, UNLIMITED_MS)


def respond(reply: Synced | KafkaError) -> SyncGroupResponse:
    if isinstance(reply, KafkaError):
        return SyncGroupResponse(error_code=reply.code)
    return SyncGroupResponse(
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol,
        assignment=reply.assignment,
    )
