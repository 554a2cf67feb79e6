"""Metadata, DescribeTopicPartitions and DescribeCluster: what a client learns first."""

from differential.case import Case, case
from differential.requests import ONE, THREE, topic
from differential.rules import own
from differential.symbols import topic_id
from penstock.types import NO_UUID, Uuid
from penstock.wire.messages.describe_cluster import DescribeClusterRequest
from penstock.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

TWO = (topic(partitions=3), topic("~u", partitions=2))
NAMES_REFUSED = {
    "empty": "",
    "of one dot": ".",
    "of two dots": "..",
    "with a blank": "a b",
    "with a slash": "a/b",
    "not ascii": "thé",
    "of 250 characters": "x" * 250,
}
STRANGE_ID = Uuid(bytes(range(16)))


def _of(*names: str, create: bool = False) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=create,
    )


def _of_ids(*ids: Uuid) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(topic_id=id_, name=None) for id_ in ids],
        allow_auto_topic_creation=False,
    )


METADATA = [
    case("one topic", _of("~t"), topics=THREE),
    case("two topics", _of("~u", "~t"), topics=TWO),
    case("the same topic twice", _of("~t", "~t"), topics=ONE),
    case("no topics", MetadataRequest(topics=[]), since=1),
    case(
        "all topics, as version 0 asks",
        MetadataRequest(topics=[]),
        topics=TWO,
        until=0,
        rules={"MetadataResponse": {"topics": own("name")}},
    ),
    case(
        "all topics",
        MetadataRequest(topics=None),
        topics=TWO,
        since=1,
        rules={"MetadataResponse": {"topics": own("name", "topic_id")}},
    ),
    case("an unknown topic", _of("~none"), since=4),
    case("a known and an unknown topic", _of("~t", "~none"), topics=ONE, since=4),
    *(case(f"a name {what}", _of(name), since=4) for what, name in NAMES_REFUSED.items()),
    *(case(f"creation of a name {what}", _of(name, create=True))
      for what, name in NAMES_REFUSED.items()),
    case("what the caller may do with a topic",
         MetadataRequest(topics=[MetadataRequestTopic(name="~t")],
                         include_topic_authorized_operations=True), topics=ONE, since=8),
    case("what the caller may do with the cluster",
         MetadataRequest(topics=[], include_cluster_authorized_operations=True),
         since=8, until=10),
    case("by id", _of_ids(topic_id("~t"), topic_id("~u")), topics=TWO, since=12),
    case("by id, before that is served", _of_ids(topic_id("~t")), topics=ONE, since=10, until=11),
    case("an unknown id", _of_ids(STRANGE_ID), since=12),
    case("a known and an unknown id", _of_ids(topic_id("~t"), STRANGE_ID), topics=ONE, since=12),
    case("id zero and no name", _of_ids(NO_UUID), since=12),
    case("null name before ids", MetadataRequest(topics=[MetadataRequestTopic(name=None)]),
         since=10, until=11),
    case("id and name",
         MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id("~t"), name="~t")],
                         allow_auto_topic_creation=False), topics=ONE, since=12),
    case("the id of one topic, the name of another",
         MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id("~t"), name="~u")],
                         allow_auto_topic_creation=False), topics=TWO, since=12),
    case("ids and names mixed",
         MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id("~t"), name=None),
                                 MetadataRequestTopic(name="~u")],
                         allow_auto_topic_creation=False), topics=TWO, since=12),
]  # fmt: skip


def _describe(
    *names: str, limit: int = 2000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor,
    )


PARTITIONS = [
    case("one topic", _describe("~t"), topics=THREE),
    case("two topics, out of order", _describe("~u", "~t"), topics=TWO),
    case("the same topic twice", _describe("~t", "~t"), topics=ONE),
    case("an unknown topic", _describe("~none")),
    case("known and unknown topics", _describe("~none", "~t"), topics=ONE),
    case("an empty name", _describe("")),
    case("a name with a blank", _describe("a b")),
    case("a limit within a topic", _describe("~t", "~u", limit=2), topics=TWO),
    case("a limit at a topic's end", _describe("~t", "~u", limit=3), topics=TWO),
    case("a limit of zero", _describe("~t", limit=0), topics=ONE),
    case("a negative limit", _describe("~t", limit=-1), topics=ONE),
    case("a limit of one", _describe("~t", limit=1), topics=THREE),
    case("a cursor within a topic",
         _describe("~t", "~u", cursor=Cursor(topic_name="~t", partition_index=2)), topics=TWO),
    case("a cursor at the second topic",
         _describe("~t", "~u", cursor=Cursor(topic_name="~u", partition_index=0)), topics=TWO),
    case("a cursor at no topic",
         _describe("~t", "~u", cursor=Cursor(topic_name="~tt", partition_index=0)), topics=TWO),
    case("a cursor beyond the partitions",
         _describe("~t", "~u", cursor=Cursor(topic_name="~t", partition_index=9)), topics=TWO),
    case("a negative cursor",
         _describe("~t", cursor=Cursor(topic_name="~t", partition_index=-1)), topics=TWO),
    case("a cursor and a limit",
         _describe("~t", "~u", limit=1, cursor=Cursor(topic_name="~t", partition_index=1)),
         topics=TWO),
]  # fmt: skip

CLUSTER = [
    case("brokers", DescribeClusterRequest()),
    case("brokers and operations",
         DescribeClusterRequest(include_cluster_authorized_operations=True)),
    case("controllers", DescribeClusterRequest(endpoint_type=2), since=1),
    case("endpoint type 0", DescribeClusterRequest(endpoint_type=0), since=1),
    case("endpoint type 9", DescribeClusterRequest(endpoint_type=9), since=1),
    case("fenced brokers too", DescribeClusterRequest(include_fenced_brokers=True), since=2),
]  # fmt: skip

CASES: list[Case] = [*METADATA, *PARTITIONS, *CLUSTER]
