"""Removes a member from a group, as its coordinator does after a session time-out (KIP-345)."""

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.route import ToCoordinator
from penstock.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)


async def remove_member(
    client: Client, group: str, member: str, instance: str | None, reason: str
) -> None:
    """`instance` is the member's group.instance.id, if it has one. The group rebalances."""

    def raise_refusal(response: LeaveGroupResponse) -> None:
        check(response.error_code, f"group {group}")
        for each in response.members:
            check(each.error_code, f"member {member} of group {group}")

    # A static member is identified by its instance alone: its member id changes with each restart.
    identity = MemberIdentity(
        member_id=member if instance is None else "", group_instance_id=instance, reason=reason
    )
    request = LeaveGroupRequest(group_id=group, member_id=member, members=[identity])
    await client.call(request, LeaveGroupResponse, to=ToCoordinator(group), check=raise_refusal)
