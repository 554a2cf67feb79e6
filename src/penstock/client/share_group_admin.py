"""Requests about share groups that only administrators send: member epochs, deletion of offsets."""

from collections.abc import Sequence

from penstock.client.cluster import Client
from penstock.client.committed import check_groups
from penstock.client.errors import BrokerRefused, check
from penstock.client.route import ToCoordinator
from penstock.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from penstock.wire.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


async def member_epochs(client: Client, group: str) -> dict[str, int]:
    """Epochs by member id."""
    response = await client.call(
        ShareGroupDescribeRequest(group_ids=[group]),
        ShareGroupDescribeResponse,
        to=ToCoordinator(group),
        check=lambda each: check_groups(group, each.groups),
    )
    return {
        each.member_id: each.member_epoch for found in response.groups for each in found.members
    }


async def delete_share_offsets(
    client: Client, group: str, topics: Sequence[str]
) -> dict[str, BrokerRefused | None]:
    """Delete the offsets; returns the error of each topic, if any."""

    def raise_refusal(response: DeleteShareGroupOffsetsResponse) -> None:
        check(response.error_code, f"group {group}", response.error_message)

    response = await client.call(
        DeleteShareGroupOffsetsRequest(
            group, [DeleteShareGroupOffsetsRequestTopic(each) for each in topics]
        ),
        DeleteShareGroupOffsetsResponse,
        to=ToCoordinator(group),
        check=raise_refusal,
    )
    return {
        each.topic_name: BrokerRefused(each.error_code, each.topic_name, each.error_message)
        if each.error_code
        else None
        for each in response.responses
    }
