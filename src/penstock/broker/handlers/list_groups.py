"""ListGroups (key 16, v0-v5): the groups that this broker coordinates, by state and type."""

from collections.abc import Iterator
from itertools import chain

from penstock.broker.context import Context
from penstock.coordinator.group.shard import GroupShard
from penstock.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"


def list_groups(request: ListGroupsRequest, ctx: Context) -> ListGroupsResponse:
    states = {each.lower() for each in request.states_filter}
    types = {each.lower() for each in request.types_filter}
    shards = ctx.services.coordination.groups.shards()
    return ListGroupsResponse(
        groups=[
            group
            for group in chain.from_iterable(map(listed, shards))
            if (not states or group.group_state.lower() in states)
            and (not types or group.group_type in types)
        ]
    )


def listed(shard: GroupShard) -> Iterator[ListedGroup]:
    for group in shard.classic_groups.values():
        yield ListedGroup(
            group_id=group.id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC,
        )
    for consumer in shard.consumer_groups.values():
        yield ListedGroup(
            group_id=consumer.id,
            protocol_type=CONSUMER,
            group_state=consumer.state.value,
            group_type=CONSUMER,
        )
    for share in shard.share_groups.values():
        yield ListedGroup(
            group_id=share.id,
            protocol_type=SHARE,
            group_state=share.state.value,
            group_type=SHARE,
        )
    for streams in shard.streams_groups.values():
        yield ListedGroup(
            group_id=streams.id,
            protocol_type=STREAMS,
            group_state=streams.state.value,
            group_type=STREAMS,
        )
