"""Describes share groups (KIP-932); reads and alters their offsets."""

from collections.abc import Mapping
from typing import NamedTuple

from penstock.client.cluster import Client
from penstock.client.committed import check_groups
from penstock.client.errors import BrokerRefused, UnsupportedVersion, check
from penstock.client.group_description import (
    GroupDescription,
    MemberDescription,
    assigned_partitions,
)
from penstock.client.listing import by_topic
from penstock.client.route import ToCoordinator
from penstock.errors import ErrorCode
from penstock.types import Offset, TopicPartition
from penstock.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from penstock.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from penstock.wire.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

SHARE = "share"


class ShareOffset(NamedTuple):
    """The first unfinished record, and the number of unfinished records; -1: unknown."""

    start: int
    lag: int
    leader_epoch: int = -1


async def describe_share_group(client: Client, group: str) -> GroupDescription:
    response = await client.call(
        ShareGroupDescribeRequest(group_ids=[group]),
        ShareGroupDescribeResponse,
        to=ToCoordinator(group),
        check=lambda each: check_groups(group, each.groups),
    )
    (found,) = response.groups
    return GroupDescription(
        group,
        found.group_state,
        SHARE,
        found.assignor_name,
        tuple(
            MemberDescription(
                each.member_id,
                None,
                each.client_id,
                each.client_host.removeprefix("/"),
                assigned_partitions(each.assignment),
            )
            for each in found.members
        ),
        SHARE,
        found.group_epoch,
        found.assignment_epoch,
    )


async def is_share_group(client: Client, group: str) -> bool:
    """Whether the group exists and is a share group."""
    try:
        await describe_share_group(client, group)
    except UnsupportedVersion:
        return False
    except BrokerRefused as refused:
        if refused.code not in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}:
            raise
        return False
    return True


async def share_offsets(client: Client, group: str) -> dict[TopicPartition, ShareOffset]:
    """Offsets of every partition that the group has started to read."""
    response = await client.call(
        DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, None)]),
        DescribeShareGroupOffsetsResponse,
        to=ToCoordinator(group),
        check=lambda each: check_groups(group, each.groups),
    )
    return {
        TopicPartition(topic.topic_name, each.partition_index): ShareOffset(
            each.start_offset, each.lag, each.leader_epoch
        )
        for found in response.groups
        for topic in found.topics
        for each in topic.partitions
        if not each.error_code
    }


async def alter_share_offsets(
    client: Client, group: str, offsets: Mapping[TopicPartition, Offset]
) -> None:
    """Set a group's start offsets; a group with members answers NON_EMPTY_GROUP."""

    def raise_refusal(response: AlterShareGroupOffsetsResponse) -> None:
        check(response.error_code, f"group {group}", response.error_message)
        for topic in response.responses:
            for each in topic.partitions:
                about = f"{topic.topic_name}-{each.partition_index} of group {group}"
                check(each.error_code, about, each.error_message)

    await client.call(
        AlterShareGroupOffsetsRequest(
            group,
            [
                AlterShareGroupOffsetsRequestTopic(
                    name,
                    [
                        AlterShareGroupOffsetsRequestPartition(each.partition, offsets[each])
                        for each in partitions
                    ],
                )
                for name, partitions in by_topic(offsets).items()
            ],
        ),
        AlterShareGroupOffsetsResponse,
        to=ToCoordinator(group),
        check=raise_refusal,
    )
