"""Very many refused names are handled in several loop turns, with the same answer as a few."""

import asyncio
from collections.abc import Callable, Coroutine
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from penstock.broker.acls.access import Access
from penstock.broker.authorization.refusals import Refusal, when_refused
from penstock.broker.authorization.table import GUARDS
from penstock.errors import ErrorCode
from penstock.metadata.image import ClusterImage
from penstock.security.acl import (
    AccessRule,
    Acl,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from penstock.security.acls import Acls
from penstock.security.principal import user
from penstock.wire.messages import describe_share_group_offsets as sharing
from penstock.wire.messages import offset_fetch as fetching
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class Topic(NamedTuple):
    name: str
    partitions: list[int]


REFUSAL = Refusal(
    lambda topic, parts: (topic.name, parts), attrgetter("partitions"), lambda _, i: i
)


@pytest.mark.parametrize(
    ("topics", "are_many"),
    [
        ([Topic("a", [0, 1]), Topic("b", [])], False),
        ([Topic("a", list(range(2000)))], True),
        ([Topic(str(n), []) for n in range(2000)], True),
        ([Topic(str(n), list(range(40))) for n in range(40)], True),
    ],
    ids=["few", "partitions", "topics", "both"],
)
def test_many_names_are_refused_in_several_turns(topics: list[Topic], are_many: bool) -> None:
    reply = when_refused(topics, REFUSAL, lambda refused: refused)
    if are_many:
        assert isinstance(reply, Coroutine)
        reply = asyncio.run(reply)
    assert reply == [tuple(each) for each in topics]


def access() -> Access:
    """Access to the group `g`, and to topics that begin with `mine`."""
    rule = AccessRule("User:mallory", "*", AclOperation.ALL, Permission.ALLOW)
    acls = [
        Acl(ResourcePattern(ResourceType.GROUP, "g"), rule),
        Acl(ResourcePattern(ResourceType.TOPIC, "mine", PatternType.PREFIXED), rule),
    ]
    return Access(Acls(acls), SimpleNamespace(principal=user("mallory"), host="h"), "", set())


def answered(key: int, version: int, request: Any, handler: Callable[[Any, Any], Any]) -> Any:
    """Whether the guard took several turns, and its answer."""
    controller = SimpleNamespace(auto_create_topics_enable=False)
    services = SimpleNamespace(
        cluster=SimpleNamespace(image=ClusterImage()), config=SimpleNamespace(controller=controller)
    )
    ctx = SimpleNamespace(version=version, services=services)
    reply = GUARDS[key](request, cast("Any", ctx), cast("Any", handler), access())
    is_later = isinstance(reply, Coroutine)
    return is_later, asyncio.run(reply) if is_later else reply


def fetched(request: Any, _: Any) -> Any:
    return fetching.OffsetFetchResponse(
        groups=[
            fetching.OffsetFetchResponseGroup(
                group.group_id,
                topics=[
                    fetching.OffsetFetchResponseTopics(
                        name=each.name,
                        partitions=[
                            fetching.OffsetFetchResponsePartitions(index)
                            for index in each.partition_indexes
                        ],
                    )
                    for each in group.topics
                ],
            )
            for group in request.groups
        ]
    )


@pytest.mark.parametrize(
    ("topics", "partitions", "is_later"), [(4, 2, False), (4, 1000, True), (1000, 1, True)]
)
def test_offset_fetch_returns_offsets_of_allowed_topics_only(
    topics: int, partitions: int, is_later: bool
) -> None:
    names = [f"{'mine' if at % 2 else 'theirs'}-{at}" for at in range(topics)]
    named = [
        fetching.OffsetFetchRequestTopics(name=each, partition_indexes=list(range(partitions)))
        for each in names
    ]
    groups = [fetching.OffsetFetchRequestGroup(each, topics=named) for each in ("g", "other")]
    took_turns, answer = answered(9, 9, fetching.OffsetFetchRequest(groups=groups), fetched)
    assert took_turns == is_later
    seen, other = answer.groups
    assert (other.group_id, other.error_code, other.topics) == (
        "other",
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        [],
    )
    assert [(each.name, {part.error_code for part in each.partitions}) for each in seen.topics] == [
        *((each, {0}) for each in names[1::2]),
        *((each, {TOPIC}) for each in names[::2]),
    ]
    assert {len(each.partitions) for each in seen.topics} == {partitions}


@pytest.mark.parametrize(("partitions", "is_later"), [(2, False), (2000, True)])
def test_offsets_of_a_share_group_are_refused_by_partition(partitions: int, is_later: bool) -> None:
    named = [
        sharing.DescribeShareGroupOffsetsRequestTopic(
            topic_name="theirs", partitions=list(range(partitions))
        )
    ]
    group = sharing.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=named)

    def described(request: Any, _: Any) -> Any:
        assert [each.topics for each in request.groups] == [[]]
        return sharing.DescribeShareGroupOffsetsResponse(
            groups=[sharing.DescribeShareGroupOffsetsResponseGroup(group_id="g")]
        )

    request = sharing.DescribeShareGroupOffsetsRequest(groups=[group])
    took_turns, answer = answered(90, 0, request, described)
    assert took_turns == is_later
    (topic,) = answer.groups[0].topics
    assert [each.partition_index for each in topic.partitions] == list(range(partitions))
    assert {each.error_code for each in topic.partitions} == {TOPIC}


@pytest.mark.parametrize(("count", "is_later"), [(4, False), (1000, True)])
def test_metadata_describes_allowed_topics_only(count: int, is_later: bool) -> None:
    names = [f"{'mine' if at % 2 else 'theirs'}-{at}" for at in range(count)]

    def described(request: Any, _: Any) -> Any:
        return MetadataResponse(
            topics=[MetadataResponseTopic(name=each.name) for each in request.topics]
        )

    request = MetadataRequest(topics=[MetadataRequestTopic(name=each) for each in names])
    took_turns, answer = answered(3, 12, request, described)
    assert took_turns == is_later
    assert [(each.name, each.error_code) for each in answer.topics] == [
        *((each, 0) for each in names[1::2]),
        *((each, TOPIC) for each in names[::2]),
    ]
