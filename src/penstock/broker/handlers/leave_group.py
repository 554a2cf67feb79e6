"""LeaveGroup (key 13, v0-v5): remove members, one or many; the group rebalances.

An administrator removes a static member by its instance id alone.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered, code_for
from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.errors import UnknownMemberId
from penstock.coordinator.result import Refused
from penstock.errors import KafkaError
from penstock.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)


def leave_group(
    request: LeaveGroupRequest, ctx: Context
) -> LeaveGroupResponse | Parked[LeaveGroupResponse]:
    members = request.members
    if ctx.version < 3:
        members = [MemberIdentity(member_id=request.member_id)]
    leaving = tuple(
        LeavingMember(each.member_id, each.group_instance_id, each.reason or "") for each in members
    )
    pending = ctx.services.coordination.groups.leave(request.group_id, leaving)

    def respond(replies: list[tuple[Refused, ...] | KafkaError]) -> LeaveGroupResponse:
        (reply,) = replies
        if isinstance(reply, UnknownMemberId):
            reply = (reply,) * len(members)  # the group does not exist
        if isinstance(reply, KafkaError):
            return LeaveGroupResponse(error_code=reply.code)
        if ctx.version < 3:
            return LeaveGroupResponse(error_code=code_for(reply[0]))
        return LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=code_for(refused),
                )
                for each, refused in zip(members, reply, strict=True)
            ]
        )

    return answered([pending], respond, ctx)
