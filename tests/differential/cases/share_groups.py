"""Requests of members and administrators of share groups (KIP-932)."""

from typing import Any

from msgspec.structs import replace

from differential.batches import batch
from differential.case import Case, Eventually, Step, case
from differential.requests import ONE, THREE, produce
from differential.symbols import topic_id
from penstock.types import Uuid
from penstock.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from penstock.wire.messages.delete_groups import DeleteGroupsRequest
from penstock.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from penstock.wire.messages.describe_groups import DescribeGroupsRequest
from penstock.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.wire.messages.list_groups import ListGroupsRequest
from penstock.wire.messages.share_acknowledge import (
    AcknowledgementBatch as Acknowledged,
)
from penstock.wire.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from penstock.wire.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from penstock.wire.messages.share_group_describe import ShareGroupDescribeRequest
from penstock.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

GROUP = 32
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
Given = tuple[int, int, int]
UNKNOWN = Uuid(b"unknown".ljust(16, b"?"))


def enter(
    member_id: str = "a",
    *,
    group: str = "~g",
    epoch: int = 0,
    rack: str | None = None,
    topics: tuple[str, ...] | None = ("~t",),
) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        rack_id=rack,
        subscribed_topic_names=None if topics is None else list(topics),
    )


def beat(member_id: str = "a", epoch: int = 2, *, group: str = "~g") -> ShareGroupHeartbeatRequest:
    return enter(member_id, group=group, epoch=epoch, topics=None)


def has_partitions(reply: Any) -> bool:
    return reply.assignment is not None and bool(reply.assignment.topic_partitions)


def entered(member_id: str = "a") -> Eventually:
    """Kafka assigns partitions once they have state, at a later heartbeat."""
    return Eventually(enter(member_id), has_partitions)


EARLIEST = IncrementalAlterConfigsRequest(
    [AlterConfigsResource(GROUP, "~g", [AlterableConfig("share.auto.offset.reset", 0, "earliest")])]
)


def described(*groups: str, operations: bool = False) -> ShareGroupDescribeRequest:
    return ShareGroupDescribeRequest(list(groups or ("~g",)), operations)


def fetch(
    *given: Given,
    epoch: int = 0,
    member: str | None = "a",
    group: str | None = "~g",
    most: int = 100,
    topic: Uuid | None = None,
    partition: int = 0,
    types: list[int] | None = None,
    forgotten: tuple[int, ...] = (),
    wait_ms: int = 0,
    renews: bool = False,
) -> ShareFetchRequest:
    named = topic_id("~t") if topic is None else topic
    batches = [AcknowledgementBatch(a, b, types or [c]) for a, b, c in given]
    return ShareFetchRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        max_wait_ms=wait_ms,
        min_bytes=0 if renews else 1,
        max_bytes=0 if renews else 0x7FFFFFFF,
        max_records=0 if renews else most,
        batch_size=0 if renews else most,
        is_renew_ack=renews,
        topics=[FetchTopic(named, [FetchPartition(partition, batches)])],
        forgotten_topics_data=[ForgottenTopic(named, list(forgotten))] if forgotten else [],
    )


def acknowledge(
    *given: Given,
    epoch: int = 1,
    member: str | None = "a",
    topic: Uuid | None = None,
    types: list[int] | None = None,
    renews: bool = False,
) -> ShareAcknowledgeRequest:
    batches = [Acknowledged(a, b, types or [c]) for a, b, c in given]
    named = topic_id("~t") if topic is None else topic
    return ShareAcknowledgeRequest(
        group_id="~g",
        member_id=member,
        share_session_epoch=epoch,
        is_renew_ack=renews,
        topics=[AcknowledgeTopic(named, [AcknowledgePartition(0, batches)])],
    )


def has_records(reply: Any) -> bool:
    return any(part.acquired_records for topic in reply.responses for part in topic.partitions)


def offsets(
    *partitions: int, group: str = "~g", topic: str = "~t"
) -> DescribeShareGroupOffsetsRequest:
    topics = [DescribeShareGroupOffsetsRequestTopic(topic, list(partitions))]
    return DescribeShareGroupOffsetsRequest(
        [DescribeShareGroupOffsetsRequestGroup(group, topics if partitions else None)]
    )


def alter(
    start: int = 2, *, group: str = "~g", topic: str = "~t", partition: int = 0
) -> AlterShareGroupOffsetsRequest:
    wanted = [AlterShareGroupOffsetsRequestPartition(partition, start)]
    return AlterShareGroupOffsetsRequest(group, [AlterShareGroupOffsetsRequestTopic(topic, wanted)])


def forget(*topics: str, group: str = "~g") -> Step:
    return DeleteShareGroupOffsetsRequest(
        group, [DeleteShareGroupOffsetsRequestTopic(each) for each in topics]
    )


ALONE: tuple[Step, ...] = (enter(),)
READING: tuple[Step, ...] = (EARLIEST, produce(batch(3)), entered())
"""A member that has partition 0, with three records."""
HOLDING: tuple[Step, ...] = (*READING, Eventually(fetch(), has_records))
EMPTY: tuple[Step, ...] = (*HOLDING, fetch((0, 1, ACCEPT), epoch=1), fetch(epoch=-1, topic=None),
                           beat(epoch=-1))  # fmt: skip

HEARTBEAT = [
    case("join without an id", enter("")),
    case("join with a long id", enter("a" * 37)),
    case("join with the longest id", enter("a" * 36, topics=("~none",))),
    case("join a group without a name", enter(group="")),
    case("join a topic that is not there", enter(topics=("~none",))),
    case("join no topics", enter(topics=())),
    case("join without a subscription", enter(topics=None)),
    case("join without a name for the rack", enter(rack="")),
    case("join a topic that is not there, and go on", enter(topics=("~none",)), beat(), described(),
         api=ShareGroupHeartbeatRequest),
    case("an epoch to come", enter(topics=("~none",)), beat(epoch=9)),
    case("an impossible epoch", *ALONE, beat(epoch=-2), topics=ONE),
    case("a member that nobody knows", beat("nobody")),
    case("a member that the group does not know", *ALONE, beat("nobody"), topics=ONE),
    case("leave", enter(topics=("~none",)), beat(epoch=-1), described(),
         api=ShareGroupHeartbeatRequest),
    case("leave a group that is not there", beat(epoch=-1)),
    case("leave without having come", *ALONE, beat("nobody", -1), topics=ONE),
    case("get partitions", entered(), topics=THREE, api=ShareGroupHeartbeatRequest),
]  # fmt: skip

DESCRIBE = [
    case("no group", described("~none")),
    case("a group without a name", described("")),
    case("none", ShareGroupDescribeRequest()),
    case("a member alone", enter(topics=("~none",)), described()),
    case("what one may do", enter(topics=("~none",)), described(operations=True)),
    case("many", enter(topics=("~none",)), described("~g", "~none", "~g")),
    case("as a classic group", enter(topics=("~none",)), DescribeGroupsRequest(["~g"]),
         api=ShareGroupHeartbeatRequest),
    case("among all", enter(topics=("~none",)), ListGroupsRequest([], ["share"]),
         api=ShareGroupHeartbeatRequest),
    case("deleted with a member", enter(topics=("~none",)), DeleteGroupsRequest(["~g"]),
         api=ShareGroupHeartbeatRequest),
    case("deleted when it is empty", enter(topics=("~none",)), beat(epoch=-1),
         DeleteGroupsRequest(["~g"]), described(), api=ShareGroupDescribeRequest),
]  # fmt: skip

FETCH = [
    case("records", *HOLDING, topics=ONE, api=ShareFetchRequest),
    case("accept and fetch", *HOLDING, fetch((0, 2, ACCEPT), epoch=1), topics=ONE,
         api=ShareFetchRequest),
    case("release and fetch", *HOLDING, fetch((0, 1, RELEASE), epoch=1), topics=ONE,
         api=ShareFetchRequest),
    case("types for each record", *HOLDING, fetch((0, 2, 0), epoch=1, types=[1, 2, 3]), topics=ONE,
         api=ShareFetchRequest),
    case("no session", fetch(epoch=3), topics=ONE),
    case("a wrong epoch", *HOLDING, fetch(epoch=5), topics=ONE, api=ShareFetchRequest),
    case("acknowledge with the first request", *READING, fetch((0, 0, ACCEPT)), topics=ONE,
         api=ShareFetchRequest),
    case("no member", fetch(member=None), topics=ONE),
    case("no group", fetch(group=None), topics=ONE),
    case("a topic that is not there", *READING, fetch(topic=UNKNOWN, wait_ms=100), topics=ONE,
         api=ShareFetchRequest),
    case("a partition that is not there", *READING, fetch(partition=7, wait_ms=100), topics=ONE,
         api=ShareFetchRequest),
    case("no records", *HOLDING, fetch(epoch=1), topics=ONE, api=ShareFetchRequest),
    case("acknowledge what one has not", *HOLDING, fetch((5, 7, ACCEPT), epoch=1), topics=ONE,
         api=ShareFetchRequest),
    case("acknowledge twice", *HOLDING, fetch((0, 0, ACCEPT), epoch=1),
         fetch((0, 0, ACCEPT), epoch=2), topics=ONE, api=ShareFetchRequest),
    case("acknowledge again in the middle", *HOLDING, fetch((1, 1, ACCEPT), epoch=1),
         fetch((1, 1, ACCEPT), epoch=2), topics=ONE, api=ShareFetchRequest),
    case("acknowledge out of order", *HOLDING, fetch((2, 2, ACCEPT), (0, 0, ACCEPT), epoch=1),
         topics=ONE, api=ShareFetchRequest),
    case("acknowledge backwards", *HOLDING, fetch((2, 0, ACCEPT), epoch=1), topics=ONE,
         api=ShareFetchRequest),
    case("acknowledge by an unknown type", *HOLDING, fetch((0, 0, 9), epoch=1), topics=ONE,
         api=ShareFetchRequest),
    case("acknowledge with too many types", *HOLDING, fetch((0, 0, 0), epoch=1, types=[1, 1]),
         topics=ONE, api=ShareFetchRequest),
    case("the last request", *HOLDING, fetch((0, 2, ACCEPT), epoch=-1), fetch(epoch=2), topics=ONE,
         api=ShareFetchRequest),
    case("the last request adds", *HOLDING, fetch(epoch=-1), topics=ONE, api=ShareFetchRequest),
    case("forget", *HOLDING, fetch((0, 2, ACCEPT), epoch=1, forgotten=(0,)), fetch(epoch=2),
         topics=ONE, api=ShareFetchRequest),
]  # fmt: skip

ACKNOWLEDGE = [
    case("accept", *HOLDING, acknowledge((0, 2, ACCEPT)), topics=ONE, api=ShareAcknowledgeRequest),
    case("by types", *HOLDING, acknowledge((0, 2, 0), types=[1, 2, 3]), topics=ONE,
         api=ShareAcknowledgeRequest),
    case("as a first request", *HOLDING, acknowledge((0, 2, ACCEPT), epoch=0), topics=ONE,
         api=ShareAcknowledgeRequest),
    case("no session", acknowledge((0, 2, ACCEPT)), topics=ONE),
    case("a wrong epoch", *HOLDING, acknowledge((0, 2, ACCEPT), epoch=4), topics=ONE,
         api=ShareAcknowledgeRequest),
    case("as the last request", *HOLDING, acknowledge((0, 2, ACCEPT), epoch=-1),
         acknowledge((0, 2, ACCEPT), epoch=2), topics=ONE, api=ShareAcknowledgeRequest),
    case("what one has not", *HOLDING, acknowledge((7, 9, ACCEPT)), topics=ONE,
         api=ShareAcknowledgeRequest),
    case("nothing", *HOLDING, acknowledge(), topics=ONE, api=ShareAcknowledgeRequest),
    case("of a topic that is not there", *HOLDING, acknowledge((0, 0, ACCEPT), topic=UNKNOWN),
         topics=ONE, api=ShareAcknowledgeRequest),
    case("by an unknown type", *HOLDING, acknowledge((0, 0, 5)), topics=ONE,
         api=ShareAcknowledgeRequest),
]  # fmt: skip

OFFSETS = [
    case("no group", offsets(group="~none")),
    case("a group without a name", offsets(group="")),
    case("of a topic that is not there", enter(topics=("~none",)), offsets(0, topic="~none")),
    case("before it reads", *ALONE, offsets(0), topics=ONE),
    case("everything", *EMPTY, offsets(), topics=ONE, api=DescribeShareGroupOffsetsRequest),
    case("one that is not there", *EMPTY, offsets(0, 7), topics=ONE,
         api=DescribeShareGroupOffsetsRequest, since=1),  # Kafka does not answer for 15 seconds
]  # fmt: skip

KNOWN = Eventually(
    alter(group="~other"), lambda answer: not answer.responses[0].partitions[0].error_code
)
"""Kafka's group coordinator learns of a new topic later than its broker."""

ALTER = [
    case("no group", KNOWN, alter(group="~none"), topics=ONE),
    case("a group without a name", alter(group=""), topics=ONE),
    case("a group with members", *ALONE, alter(), topics=ONE),
    case("an empty group", *EMPTY, alter(), offsets(0), topics=ONE,
         api=AlterShareGroupOffsetsRequest),
    case("a topic that is not there", *EMPTY, alter(topic="~none"), topics=ONE,
         api=AlterShareGroupOffsetsRequest),
    case("a partition that is not there", *EMPTY, alter(partition=9), topics=ONE,
         api=AlterShareGroupOffsetsRequest),
]  # fmt: skip

DELETE = [
    case("no group", forget("~t", group="~none"), topics=ONE),
    case("a group without a name", forget("~t", group=""), topics=ONE),
    case("a group with members", *ALONE, forget("~t"), topics=ONE),
    case("an empty group", *EMPTY, forget("~t"), offsets(), topics=ONE,
         api=DeleteShareGroupOffsetsRequest),
    case("a topic that is not there", *EMPTY, forget("~none"), topics=ONE,
         api=DeleteShareGroupOffsetsRequest),
    case("no topics", *EMPTY, forget(), topics=ONE, api=DeleteShareGroupOffsetsRequest),
]  # fmt: skip

NEVER_RENEW = IncrementalAlterConfigsRequest(
    [
        AlterConfigsResource(
            GROUP, "~g", [AlterableConfig("share.renew.acknowledge.enable", 0, "false")]
        )
    ]
)

RENEWALS = [
    case("renew", *HOLDING, acknowledge((0, 2, RENEW), renews=True),
         acknowledge((0, 2, ACCEPT), epoch=2), topics=ONE, api=ShareAcknowledgeRequest, since=2),
    case("renew without saying so", *HOLDING, acknowledge((0, 2, RENEW)), topics=ONE,
         api=ShareAcknowledgeRequest, since=2),
    case("renew before it was there", *HOLDING, acknowledge((0, 2, RENEW)), topics=ONE,
         api=ShareAcknowledgeRequest, until=1),
    case("say renew and accept", *HOLDING, acknowledge((0, 2, ACCEPT), renews=True), topics=ONE,
         api=ShareAcknowledgeRequest, since=2),
    case("renew some and accept others", *HOLDING,
         acknowledge((0, 2, 0), types=[RENEW, ACCEPT, RELEASE], renews=True),
         acknowledge((0, 0, ACCEPT), epoch=2), topics=ONE, api=ShareAcknowledgeRequest, since=2),
    case("renew what one has not", *HOLDING, acknowledge((7, 9, RENEW), renews=True), topics=ONE,
         api=ShareAcknowledgeRequest, since=2),
    case("renew what is accepted", *HOLDING, acknowledge((1, 1, ACCEPT)),
         acknowledge((1, 1, RENEW), epoch=2, renews=True), topics=ONE,
         api=ShareAcknowledgeRequest, since=2),
    case("renew with the last request", *HOLDING, acknowledge((0, 2, RENEW), epoch=-1, renews=True),
         topics=ONE, api=ShareAcknowledgeRequest, since=2),
    case("renew where that is off", NEVER_RENEW, *HOLDING,
         acknowledge((0, 2, RENEW), renews=True), topics=ONE, api=ShareAcknowledgeRequest, since=2),
    case("renew and ask for nothing", *HOLDING, fetch((0, 2, RENEW), epoch=1, renews=True),
         topics=ONE, api=ShareFetchRequest, since=2),
    *(case(f"renew and ask with {name}", *HOLDING,
           replace(fetch((0, 2, RENEW), epoch=1, renews=True), **{name: 1}),
           topics=ONE, api=ShareFetchRequest, since=2)
      for name in ("max_wait_ms", "min_bytes", "max_bytes", "max_records", "batch_size")),
    case("renew without saying so in a fetch", *HOLDING, fetch((0, 2, RENEW), epoch=1),
         topics=ONE, api=ShareFetchRequest, since=2),
    case("renew where that is off, in a fetch", NEVER_RENEW, *HOLDING,
         fetch((0, 2, RENEW), epoch=1, renews=True), topics=ONE, api=ShareFetchRequest, since=2),
]  # fmt: skip

CASES: list[Case] = [
    *HEARTBEAT,
    *DESCRIBE,
    *FETCH,
    *ACKNOWLEDGE,
    *RENEWALS,
    *OFFSETS,
    *ALTER,
    *DELETE,
]
