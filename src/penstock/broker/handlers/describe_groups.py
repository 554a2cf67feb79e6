"""DescribeGroups (key 15, v0-v6): a classic group's state, its members and their assignments.

A group that does not exist is described as Dead, from v6 on with an error.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.operations import NOT_ASKED, group_operations
from penstock.broker.translate.pending_replies import answered
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.errors import GroupIdNotFound
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def describe_groups(
    request: DescribeGroupsRequest, ctx: Context
) -> DescribeGroupsResponse | Parked[DescribeGroupsResponse]:
    tells = request.include_authorized_operations
    pending_replies = [ctx.services.coordination.groups.describe(name) for name in request.groups]

    def respond(replies: list[ClassicGroup | KafkaError]) -> DescribeGroupsResponse:
        return DescribeGroupsResponse(
            groups=[
                refused(name, reply, ctx)
                if isinstance(reply, KafkaError)
                else described(reply, group_operations(ctx, name) if tells else NOT_ASKED)
                for name, reply in zip(request.groups, replies, strict=True)
            ]
        )

    return answered(pending_replies, respond, ctx)


def refused(name: str, error: KafkaError, ctx: Context) -> DescribedGroup:
    if not isinstance(error, GroupIdNotFound):
        return DescribedGroup(group_id=name, error_code=error.code, error_message=str(error))
    return DescribedGroup(
        group_id=name,
        group_state=ClassicGroupState.DEAD.value,
        error_code=error.code if ctx.version >= 6 else ErrorCode.NONE,
        error_message=str(error),
    )


def described(group: ClassicGroup, operations: int) -> DescribedGroup:
    """Subscriptions are shown once the generation is stable, assignments always."""
    stable = group.state is ClassicGroupState.STABLE
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[
            DescribedGroupMember(
                member_id=each.id,
                group_instance_id=each.instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                member_metadata=each.metadata(group.protocol) if stable else b"",
                member_assignment=each.assignment,
            )
            for each in group.members.values()
        ],
        authorized_operations=operations,
    )
