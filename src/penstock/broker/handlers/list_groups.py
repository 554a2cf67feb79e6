"""ListGroups (key 16, v0-v5): the groups that this broker coordinates, by state and type."""

from penstock.broker.context import Context
from penstock.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

CLASSIC = "classic"


def list_groups(request: ListGroupsRequest, ctx: Context) -> ListGroupsResponse:
    states = {each.lower() for each in request.states_filter}
    types = {each.lower() for each in request.types_filter}
    groups = [group for shard in ctx.services.groups.shards() for group in shard.groups.values()]
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=CLASSIC,
            )
            for group in groups
            if (not states or group.state.value.lower() in states)
            and (not types or CLASSIC in types)
        ]
    )
