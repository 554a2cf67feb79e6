"""Describes streams groups (KIP-1071)."""

from penstock.client.cluster import Client
from penstock.client.committed import check_groups
from penstock.client.group_description import GroupDescription, MemberDescription
from penstock.client.route import ToCoordinator
from penstock.types import TopicPartition
from penstock.wire.messages.streams_group_describe import (
    DescribedGroup,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

STREAMS = "streams"
STICKY = "sticky"
"""The only assignor of brokers before 4.4, which do not name it."""


async def fetch_streams_group(client: Client, group: str) -> DescribedGroup:
    """The group with its topology and its members' tasks, as the coordinator describes it."""
    response = await client.call(
        StreamsGroupDescribeRequest(group_ids=[group]),
        StreamsGroupDescribeResponse,
        to=ToCoordinator(group),
        check=lambda each: check_groups(group, each.groups),
    )
    (found,) = response.groups
    return found


async def describe_streams_group(client: Client, group: str) -> GroupDescription:
    found = await fetch_streams_group(client, group)
    return GroupDescription(
        group,
        found.group_state,
        STREAMS,
        found.assignor_name or STICKY,
        tuple(
            MemberDescription(
                each.member_id,
                each.instance_id,
                each.client_id,
                each.client_host.removeprefix("/"),
                tuple(active_partitions(each, found)),
            )
            for each in found.members
        ),
        STREAMS,
        found.group_epoch,
        found.assignment_epoch,
    )


def active_partitions(member: Member, group: DescribedGroup) -> list[TopicPartition]:
    """The partitions that the member's active tasks read."""
    subtopologies = [] if group.topology is None else group.topology.subtopologies or []
    read = {
        each.subtopology_id: [
            *each.source_topics,
            *(info.name for info in each.repartition_source_topics),
        ]
        for each in subtopologies
    }
    return sorted(
        TopicPartition(topic, partition)
        for each in member.assignment.active_tasks
        for topic in read.get(each.subtopology_id, ())
        for partition in each.partitions
    )
