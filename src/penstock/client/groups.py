"""Lists, describes and deletes groups; reads and alters their committed offsets."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.client.commit import check_committed, commit_request
from penstock.client.committed import check_groups, committed_request, group_offsets
from penstock.client.errors import BrokerRefused, UnsupportedVersion, check
from penstock.client.find_coordinator import find_coordinator_request
from penstock.client.group_description import (
    ConsumerProtocolMember,
    GroupDescription,
    MemberDescription,
    assigned_partitions,
)
from penstock.client.listing import by_topic
from penstock.client.metadata import BrokerNode
from penstock.client.route import ToBroker, ToCoordinator
from penstock.client.share_groups import describe_share_group
from penstock.client.streams_groups import describe_streams_group
from penstock.errors import ErrorCode, ProtocolError
from penstock.types import BrokerId, LeaderEpoch, Offset, TopicPartition, Uuid
from penstock.wire.codec import decode
from penstock.wire.messages import consumer_group_describe, describe_groups
from penstock.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from penstock.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from penstock.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from penstock.wire.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from penstock.wire.messages.find_coordinator import FindCoordinatorResponse
from penstock.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.wire.messages.offset_commit import OffsetCommitResponse
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)

NOT_COMMITTED = -1


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group as its coordinator lists it; an old broker leaves state and type empty."""

    id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset, its leader epoch and the metadata committed with it."""

    offset: Offset
    leader_epoch: LeaderEpoch
    metadata: str | None


async def find_coordinator(client: Client, of: ToCoordinator) -> BrokerNode:
    """The broker that coordinates a group or a transactional id."""

    async def attempt() -> BrokerNode:
        response = await client.call(find_coordinator_request(of), FindCoordinatorResponse)
        found = response.coordinators[0] if response.coordinators else response
        check(found.error_code, f"coordinator of {of.key}", found.error_message)
        return BrokerNode(BrokerId(found.node_id), Address(found.host, found.port), rack=None)

    return await client.retrying(attempt)


async def list_groups(client: Client) -> list[GroupListing]:
    """Every group, sorted by id; each broker lists those that it coordinates."""

    async def attempt() -> list[GroupListing]:
        found = []
        for broker in (await client.cluster()).brokers:
            connection = await client.connection(ToBroker(broker))
            response = await connection.call(
                ListGroupsRequest(), ListGroupsResponse, timeout_ms=client.request_timeout_ms
            )
            check(response.error_code, f"groups of broker {broker}")
            found += [
                GroupListing(each.group_id, each.protocol_type, each.group_state, each.group_type)
                for each in response.groups
            ]
        return sorted(found, key=lambda group: group.id)

    return await client.retrying(attempt)


async def describe_group(client: Client, group: str) -> GroupDescription:
    """Describe a group of any kind; tries the newer ones first, as Kafka's tools do."""
    for describe in (_describe_consumer, describe_share_group, describe_streams_group):
        try:
            return await describe(client, group)
        except UnsupportedVersion:
            continue
        except BrokerRefused as refused:
            if refused.code not in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}:
                raise
    return await _describe_classic(client, group)


async def _describe_consumer(client: Client, group: str) -> GroupDescription:
    response = await client.call(
        ConsumerGroupDescribeRequest(group_ids=[group]),
        ConsumerGroupDescribeResponse,
        to=ToCoordinator(group),
        check=lambda each: check_groups(group, each.groups),
    )
    (found,) = response.groups
    return consumer_group(found)


def consumer_group(found: consumer_group_describe.DescribedGroup) -> GroupDescription:
    return GroupDescription(
        found.group_id,
        found.group_state,
        "consumer",
        found.assignor_name,
        tuple(
            MemberDescription(
                each.member_id,
                each.instance_id,
                each.client_id,
                each.client_host.removeprefix("/"),
                assigned_partitions(each.assignment),
                ConsumerProtocolMember(
                    each.member_epoch,
                    assigned_partitions(each.target_assignment),
                    tuple(each.subscribed_topic_names),
                    each.subscribed_topic_regex or None,
                ),
            )
            for each in found.members
        ),
        "consumer",
        found.group_epoch,
        found.assignment_epoch,
    )


async def _describe_classic(client: Client, group: str) -> GroupDescription:
    response = await client.call(
        DescribeGroupsRequest(groups=[group]),
        DescribeGroupsResponse,
        to=ToCoordinator(group),
        check=lambda each: check_groups(group, each.groups),
    )
    (found,) = response.groups
    return classic_group(found)


def classic_group(found: describe_groups.DescribedGroup) -> GroupDescription:
    return GroupDescription(
        found.group_id,
        found.group_state,
        found.protocol_type,
        found.protocol_data,
        tuple(
            MemberDescription(
                each.member_id,
                each.group_instance_id,
                each.client_id,
                each.client_host.removeprefix("/"),
                _held(each.member_assignment) if found.protocol_type == "consumer" else (),
            )
            for each in found.members
        ),
    )


def _held(assignment: bytes) -> tuple[TopicPartition, ...]:
    """The partitions in a classic consumer's assignment; none if it cannot be decoded."""
    version = min(max(int.from_bytes(assignment[:2], "big", signed=True), 0), 3)
    try:
        shares = decode(ConsumerProtocolAssignment, version, assignment[2:]).assigned_partitions
    except ProtocolError:
        return ()
    return tuple(TopicPartition(each.topic, n) for each in shares for n in each.partitions)


async def committed_offsets(
    client: Client, group: str, names: Mapping[Uuid, str] | None = None
) -> dict[TopicPartition, OffsetAndMetadata]:
    """All offsets that the group has committed, in topics that still exist. `names` has all topics
    by their ids, for callers that read many groups.
    """

    async def attempt() -> OffsetFetchResponseGroup | OffsetFetchResponse:
        connection = await client.connection(ToCoordinator(group))
        version = connection.version_of(OffsetFetchRequest)
        response = await connection.call(
            committed_request(group), OffsetFetchResponse, timeout_ms=client.request_timeout_ms
        )
        return group_offsets(group, response, version)

    offsets = await client.retrying(attempt)
    if names is None:
        topics = await client.retrying(lambda: client.topics(None))
        names = {topic.id: topic.name for topic in topics}
    return committed_by_name(offsets, names)


def committed_by_name(
    offsets: OffsetFetchResponseGroup | OffsetFetchResponse, names: Mapping[Uuid, str]
) -> dict[TopicPartition, OffsetAndMetadata]:
    committed = {}
    for topic in offsets.topics:
        name = topic.name
        if not name and isinstance(topic, OffsetFetchResponseTopics):
            name = names.get(Uuid(topic.topic_id), "")
        for each in topic.partitions:
            if name and each.committed_offset != NOT_COMMITTED:
                committed[TopicPartition(name, each.partition_index)] = OffsetAndMetadata(
                    Offset(each.committed_offset),
                    LeaderEpoch(each.committed_leader_epoch),
                    each.metadata,
                )
    return committed


async def alter_committed(
    client: Client, group: str, offsets: Mapping[TopicPartition, Offset]
) -> None:
    """Commit offsets for an empty group; one with members answers UNKNOWN_MEMBER_ID."""
    ids = {
        name: (await client.retrying(partial(client.topic, name))).id for name in by_topic(offsets)
    }
    await client.call(
        commit_request(group, offsets, ids),
        OffsetCommitResponse,
        to=ToCoordinator(group),
        check=lambda response: check_committed(group, response),
    )


async def delete_group(client: Client, group: str) -> None:
    await client.call(
        DeleteGroupsRequest(groups_names=[group]),
        DeleteGroupsResponse,
        to=ToCoordinator(group),
        check=lambda each: check_groups(group, each.results),
    )
