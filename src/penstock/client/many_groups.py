"""Describes all groups and reads their offsets, in few requests to each coordinator."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from penstock.client.cluster import Client
from penstock.client.committed import MANY_GROUPS, group_offsets
from penstock.client.connection import Connection
from penstock.client.errors import check
from penstock.client.group_description import GroupDescription
from penstock.client.groups import (
    OffsetAndMetadata,
    classic_group,
    committed_by_name,
    committed_offsets,
    consumer_group,
    describe_group,
)
from penstock.client.route import ToBroker
from penstock.client.share_groups import SHARE
from penstock.errors import ErrorCode, KafkaError
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from penstock.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)

GROUPS_A_REQUEST: Final = 100
"""A broker answers a request in one go; smaller ones let other clients in between."""
CLASSIC, CONSUMER = "classic", "consumer"
DEAD = "Dead"
Committed = dict[TopicPartition, OffsetAndMetadata]


@dataclass(frozen=True, slots=True)
class ManyGroups:
    """Groups that their coordinators know; `failures` has the errors of unreadable ones."""

    groups: list[GroupDescription] = field(default_factory=list)
    committed: dict[str, Committed] = field(default_factory=dict)
    """Offsets by group; share groups commit nothing."""
    failures: list[KafkaError] = field(default_factory=list)


async def all_groups(client: Client, names: Mapping[Uuid, str]) -> ManyGroups:
    """`names` has all topics by their ids."""
    found = ManyGroups()
    for broker in (await client.retrying(client.cluster)).brokers:
        try:
            await _of_broker(client, broker, names, found)
        except KafkaError as error:
            found.failures.append(error)
    found.groups.sort(key=lambda each: each.id)
    return found


async def _of_broker(
    client: Client, broker: BrokerId, names: Mapping[Uuid, str], found: ManyGroups
) -> None:
    connection = await client.connection(ToBroker(broker))
    listed = await connection.call(
        ListGroupsRequest(), ListGroupsResponse, timeout_ms=client.request_timeout_ms
    )
    check(listed.error_code, f"groups of broker {broker}")
    by_type: dict[str, list[str]] = {}
    for each in listed.groups:
        by_type.setdefault(each.group_type.lower() or CLASSIC, []).append(each.group_id)
    classic, consumer = by_type.pop(CLASSIC, []), by_type.pop(CONSUMER, [])
    described = await _described(client, connection, classic, consumer)
    single = [name for others in by_type.values() for name in others]
    single += [each for each in (*classic, *consumer) if each not in described]
    found.groups.extend(described.values())
    offsets = await _committed(client, connection, list(described), names)
    found.committed.update(offsets)
    for name in single:  # of another kind, or moving to another broker now
        await _single(client, name, names, found)
    for name in described:
        if name not in offsets:
            await _single_offsets(client, name, names, found)


async def _described(
    client: Client, connection: Connection, classic: Sequence[str], consumer: Sequence[str]
) -> dict[str, GroupDescription]:
    """The groups described without an error."""
    found: dict[str, GroupDescription] = {}
    timeout_ms = client.request_timeout_ms
    for names in parts(classic):
        response = await connection.call(
            DescribeGroupsRequest(groups=names), DescribeGroupsResponse, timeout_ms=timeout_ms
        )
        for group in response.groups:
            if not group.error_code and group.group_state != DEAD:
                found[group.group_id] = classic_group(group)
    for names in parts(consumer):
        answer = await connection.call(
            ConsumerGroupDescribeRequest(group_ids=names),
            ConsumerGroupDescribeResponse,
            timeout_ms=timeout_ms,
        )
        for each in answer.groups:
            if not each.error_code:
                found[each.group_id] = consumer_group(each)
    return found


async def _committed(
    client: Client, connection: Connection, groups: Sequence[str], names: Mapping[Uuid, str]
) -> dict[str, Committed]:
    """Offsets of groups without an error; none from a broker that takes one group per request."""
    found: dict[str, Committed] = {}
    version = connection.version_of(OffsetFetchRequest)
    if version < MANY_GROUPS:
        return found
    for some in parts(groups):
        response = await connection.call(
            OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group_id=each, topics=None) for each in some],
                require_stable=True,
            ),
            OffsetFetchResponse,
            timeout_ms=client.request_timeout_ms,
        )
        for each in some:
            try:
                found[each] = committed_by_name(group_offsets(each, response, version), names)
            except KafkaError:
                continue  # requested again alone, with retries
    return found


async def _single(client: Client, name: str, names: Mapping[Uuid, str], found: ManyGroups) -> None:
    try:
        group = await describe_group(client, name)
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:  # else it was deleted meanwhile
            found.failures.append(error)
        return
    if group.state == DEAD:
        return
    found.groups.append(group)
    if group.type != SHARE:
        await _single_offsets(client, name, names, found)


async def _single_offsets(
    client: Client, name: str, names: Mapping[Uuid, str], found: ManyGroups
) -> None:
    try:
        found.committed[name] = await committed_offsets(client, name, names)
    except KafkaError as error:
        found.failures.append(error)


def parts(names: Iterable[str]) -> Iterator[list[str]]:
    every = list(names)
    for start in range(0, len(every), GROUPS_A_REQUEST):
        yield every[start : start + GROUPS_A_REQUEST]
