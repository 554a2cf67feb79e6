"""Share groups over the protocol: members share the records of a partition (KIP-932)."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.context import Peer
from penstock.broker.net.large_requests import LARGE_BYTES
from penstock.broker.share import share_partitions
from penstock.broker.share.persister import Persister
from penstock.broker.time_search import Found, search
from penstock.errors import ErrorCode
from penstock.log.partition_log import PartitionLog
from penstock.testing.broker import EmbeddedBroker
from penstock.types import Uuid
from penstock.wire.messages import alter_client_quotas as quotas
from penstock.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from penstock.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from penstock.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from penstock.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.wire.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from penstock.wire.messages.share_fetch import (
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from penstock.wire.schema import Message
from support.brokers.wire_link import WireLink
from support.groups.share_member import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    ShareMember,
    configure_group,
    make_topic,
    parts,
    produce,
)

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.max.share.sessions": "8",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as running:
        yield running


@pytest.fixture
def link(broker: EmbeddedBroker) -> Iterator[WireLink]:
    with WireLink(broker.bootstrap) as link:
        yield link


def configure(link: WireLink, group: str, **settings: str) -> None:
    configure_group(link, group, {k.replace("_", "."): v for k, v in settings.items()})


class Stage:
    """A topic with ten records in two batches, and members of a group that starts at the first."""

    def __init__(self, broker: EmbeddedBroker, link: WireLink, name: str) -> None:
        self.broker, self.link, self.name = broker, link, name
        self.members: list[ShareMember] = []
        make_topic(link, name)
        configure(link, name, share_auto_offset_reset="earliest")
        produce(link, name, 4)
        produce(link, name, 6)

    def member(self, name: str) -> ShareMember:
        member = ShareMember(self.broker.bootstrap, self.name, name, self.name)
        self.members.append(member)
        assert member.join().error_code == 0
        return member

    def offsets(self) -> tuple[int, int]:
        """The group's start offset and lag."""
        reply = self.link.ask(
            DescribeShareGroupOffsetsRequest(
                [DescribeShareGroupOffsetsRequestGroup(self.name, None)]
            )
        )
        assert isinstance(reply, DescribeShareGroupOffsetsResponse)
        (part,) = reply.groups[0].topics[0].partitions
        return part.start_offset, part.lag


@pytest.fixture
def stage(
    broker: EmbeddedBroker, link: WireLink, request: pytest.FixtureRequest
) -> Iterator[Stage]:
    stage = Stage(broker, link, request.node.name.replace("[", "-").replace("]", "")[:60])
    yield stage
    for member in stage.members:
        member.close()


def test_a_member_gets_its_partitions_with_the_first_heartbeat(stage: Stage) -> None:
    member = ShareMember(stage.broker.bootstrap, stage.name, "a", stage.name)
    stage.members.append(member)
    reply = member.join()
    assert reply.assignment is not None
    assert [each.partitions for each in reply.assignment.topic_partitions] == [[0]]


def test_records_go_to_one_member_at_a_time(stage: Stage) -> None:
    a, b = stage.member("a"), stage.member("b")
    assert a.acquired(most=4) == [(0, 3, 1)]
    assert b.acquired() == [(4, 9, 1)]
    assert a.acquired((0, 3, ACCEPT)) == []
    assert stage.offsets() == (4, 6)
    b.acknowledge((4, 5, RELEASE), (6, 7, ACCEPT), (8, 9, REJECT))
    assert stage.offsets() == (4, 2)
    assert a.acquired() == [(4, 5, 2)]
    a.acknowledge((4, 5, ACCEPT))
    assert stage.offsets() == (10, 0)


def test_a_record_limit_splits_batches_only_if_it_is_strict(stage: Stage) -> None:
    a = stage.member("a")
    assert a.acquired(most=2, share_acquire_mode=1) == [(0, 1, 1)]
    assert a.acquired(most=1) == [(2, 3, 1)]
    assert a.acquired(most=5) == [(4, 9, 1)]


def test_a_waiting_fetch_gets_records_that_another_member_releases(stage: Stage) -> None:
    a, b = stage.member("a"), stage.member("b")
    a.acquired()
    timer = threading.Timer(0.2, a.acknowledge, [(0, 9, RELEASE)])
    timer.start()
    began = time.monotonic()
    assert b.acquired(wait_ms=10_000) == [(0, 9, 2)]
    assert time.monotonic() - began < 5
    timer.join()


def test_a_closed_connection_releases_records_and_the_delivery_does_not_count(
    stage: Stage,
) -> None:
    a, b = stage.member("a"), stage.member("b")
    a.acquired()
    a.close()
    stage.members.remove(a)
    assert b.acquired(wait_ms=10_000) == [(0, 9, 1)]


def test_a_fetch_whose_session_has_ended_acquires_no_records(stage: Stage) -> None:
    a, b = stage.member("a"), stage.member("b")
    a.acquired()
    a.acquired((0, 9, ACCEPT))
    again = ShareMember(stage.broker.bootstrap, stage.name, "a", stage.name)
    stage.members.append(again)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(a.acquired, wait_ms=3000)
        time.sleep(0.2)
        assert again.acquired() == []  # another connection of the member starts a session
        produce(stage.link, stage.name, 2)
        assert waiting.result() == []
    assert b.acquired() == [(10, 11, 1)]


def test_a_lock_expires_and_a_renewed_one_expires_later(stage: Stage) -> None:
    configure(stage.link, stage.name, share_record_lock_duration_ms="1000")
    a, b = stage.member("a"), stage.member("b")
    a.acquired(most=4)
    began = time.monotonic()
    assert a.acknowledge((2, 3, RENEW)).error_code == 0
    a.acquired(most=4)  # the other batch
    time.sleep(0.5)
    a.acknowledge((4, 9, RENEW))
    assert b.acquired(wait_ms=5000)[0][:1] == (0,)
    assert 0.9 < time.monotonic() - began < 1.45


def test_a_record_is_delivered_at_most_as_often_as_the_limit_allows(stage: Stage) -> None:
    configure(stage.link, stage.name, share_delivery_count_limit="2")
    a = stage.member("a")
    assert a.acquired(most=4) == [(0, 3, 1)]
    a.acknowledge((0, 3, RELEASE))
    assert a.acquired(most=4) == [(0, 3, 2)]
    a.acknowledge((0, 3, RELEASE))
    assert a.acquired(most=100) == [(4, 9, 1)]
    assert stage.offsets() == (4, 6)


def test_a_session_epoch_counts_its_requests(stage: Stage) -> None:
    a = stage.member("a")
    assert a.fetch(epoch=3).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert a.acknowledge((0, 0, ACCEPT), epoch=0).error_code == (
        ErrorCode.INVALID_SHARE_SESSION_EPOCH
    )
    assert a.fetch((0, 0, ACCEPT), epoch=0).error_code == ErrorCode.INVALID_REQUEST
    a.epoch = 0
    a.acquired(most=4)
    assert a.fetch(epoch=7).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert a.acquired(most=100) == [(4, 9, 1)]
    reply = a.acknowledge((0, 3, ACCEPT), epoch=-1)
    assert reply.error_code == 0
    assert stage.offsets() == (4, 6)
    assert a.fetch(epoch=3).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_member_can_acknowledge_only_records_that_it_holds(stage: Stage) -> None:
    a, b = stage.member("a"), stage.member("b")
    a.acquired(most=4)
    b.acquired(most=4)
    for given, code in (
        ((0, 3, ACCEPT), ErrorCode.INVALID_RECORD_STATE),
        ((50, 60, ACCEPT), ErrorCode.INVALID_REQUEST),
        ((5, 4, ACCEPT), ErrorCode.INVALID_REQUEST),
        ((4, 9, 7), ErrorCode.INVALID_REQUEST),
    ):
        reply = b.acknowledge(given)
        assert [each.error_code for each in reply.responses[0].partitions] == [code]
        (part,) = parts(b.fetch(given))
        assert part.acknowledge_error_code == code
    assert stage.offsets()[0] <= 0


def test_the_number_of_sessions_is_limited(stage: Stage) -> None:
    members = [stage.member(f"m{n}") for n in range(9)]
    codes = [each.fetch(most=1).error_code for each in members]
    assert codes[-1] == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert not any(codes[:-1])


def test_a_client_that_is_gone_opens_no_session(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large request is decoded on another thread. Nothing would end the session of a client that
    disconnects meanwhile, and a few clients would take all sessions.
    """
    closed, free = threading.Event(), threading.Event()
    earlier = Peer("numbered", "test", 0).connection
    close = share_partitions.SharePartitions.connection_closed

    def noticed(partitions: share_partitions.SharePartitions, connection: int) -> None:
        close(partitions, connection)
        if connection > earlier:
            closed.set()

    monkeypatch.setattr(share_partitions.SharePartitions, "connection_closed", noticed)
    services = stage.broker.running.services
    before, worker = len(services.share.partitions.sessions), services.resources.worker
    worker.submit(free.wait, 20)
    with WireLink(stage.broker.bootstrap) as leaving:
        leaving.post(ShareFetchRequest(stage.name, "gone", 0), padding=LARGE_BYTES)
    assert closed.wait(10)
    done = worker.submit(lambda: None)
    free.set()
    done.result(20)
    for _ in range(5):  # turns of the loop, in which the decoded request is handled
        stage.link.ask(ListGroupsRequest())
    assert len(services.share.partitions.sessions) == before


def test_a_session_has_no_longer_member_id_than_a_group(stage: Stage) -> None:
    for size, code in ((36, ErrorCode.NONE), (37, ErrorCode.INVALID_REQUEST)):
        reply = stage.link.ask(ShareFetchRequest(stage.name, "m" * size, 0))
        assert isinstance(reply, ShareFetchResponse)
        assert reply.error_code == code
    stage.link.ask(ShareFetchRequest(stage.name, "m" * 36, -1))


def test_a_session_cannot_name_more_partitions_than_exist(stage: Stage) -> None:
    """Each request of such a session has a few bytes and would take the broker seconds."""
    a = stage.member("a")
    assert a.acquired() == [(0, 9, 1)]

    def named(first: int, last: int) -> list[FetchTopic]:
        return [FetchTopic(a.topic_id, [FetchPartition(each) for each in range(first, last)])]

    def asked(topics: list[FetchTopic], **more: Any) -> Message:
        request = ShareFetchRequest(
            group_id=stage.name, member_id="a", share_session_epoch=a.epoch, topics=topics, **more
        )
        a.epoch += 1
        return a.link.ask(request)

    refused = ErrorCode.INVALID_REQUEST
    assert getattr(asked(named(0, 5000)), "error_code", None) == refused
    forgotten = [ForgottenTopic(a.topic_id, list(range(5000)))]
    assert getattr(asked([], forgotten_topics_data=forgotten), "error_code", None) == refused
    reported = [AcknowledgeTopic(a.topic_id, [AcknowledgePartition(each) for each in range(5000)])]
    reply = a.link.ask(ShareAcknowledgeRequest(stage.name, "a", 1, topics=reported))
    assert getattr(reply, "error_code", None) == refused
    a.epoch = 1  # none of the refused requests counted
    assert getattr(asked(named(0, 900)), "error_code", None) == 0
    assert getattr(asked(named(900, 1800)), "error_code", None) == refused
    assert a.acknowledge((0, 9, ACCEPT)).error_code == 0


def test_offsets_of_a_topic_that_is_named_twice_are_altered(
    broker: EmbeddedBroker, link: WireLink
) -> None:
    broker.create_topic("twice", 2)
    part, topic = AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic
    wanted = [topic("twice", [part(0, 3)]), topic("twice", [part(1, 4)])]
    reply = link.ask(AlterShareGroupOffsetsRequest("twice", wanted))
    assert isinstance(reply, AlterShareGroupOffsetsResponse)
    assert [each.error_code for t in reply.responses for each in t.partitions] == [0, 0]
    asked = DescribeShareGroupOffsetsRequestGroup("twice", None)
    found = link.ask(DescribeShareGroupOffsetsRequest([asked]))
    assert isinstance(found, DescribeShareGroupOffsetsResponse)
    starts = {each.partition_index: each for t in found.groups[0].topics for each in t.partitions}
    assert {index: each.start_offset for index, each in starts.items()} == {0: 3, 1: 4}


def test_offsets_are_altered_and_groups_deleted_once_they_are_empty(stage: Stage) -> None:
    def altered(start: int) -> int:
        wanted = [AlterShareGroupOffsetsRequestPartition(0, start)]
        reply = stage.link.ask(
            AlterShareGroupOffsetsRequest(
                stage.name, [AlterShareGroupOffsetsRequestTopic(stage.name, wanted)]
            )
        )
        assert isinstance(reply, AlterShareGroupOffsetsResponse)
        return reply.error_code

    def deleted() -> int:
        reply = stage.link.ask(DeleteGroupsRequest([stage.name]))
        assert isinstance(reply, DeleteGroupsResponse)
        return reply.results[0].error_code

    a = stage.member("a")
    a.acquired()
    a.fetch((0, 9, ACCEPT))
    assert altered(2) == ErrorCode.NON_EMPTY_GROUP
    assert deleted() == ErrorCode.NON_EMPTY_GROUP
    a.acknowledge(epoch=-1)
    a.leave()
    assert altered(2) == 0
    assert stage.offsets()[0] == 2
    a.epoch = 0
    a.join()
    assert a.acquired() == [(2, 9, 1)]
    a.acknowledge(epoch=-1)
    a.leave()
    assert deleted() == 0
    groups = stage.link.ask(ListGroupsRequest(types_filter=["share"]))
    assert isinstance(groups, ListGroupsResponse)
    assert stage.name not in [each.group_id for each in groups.groups]


def test_the_log_of_the_share_state_is_pruned_and_loaded_again(tmp_path: Path) -> None:
    settings = {**SETTINGS, "share.coordinator.state.topic.prune.interval.ms": "50"}

    def first_offset(link: WireLink) -> int:
        asked = ListOffsetsPartition(partition_index=0, timestamp=-2)
        reply = link.ask(
            ListOffsetsRequest(-1, topics=[ListOffsetsTopic("__share_group_state", [asked])])
        )
        assert isinstance(reply, ListOffsetsResponse)
        return reply.topics[0].partitions[0].offset

    with (
        EmbeddedBroker(directory=tmp_path, settings=settings) as broker,
        WireLink(broker.bootstrap) as link,
    ):
        a = Stage(broker, link, "short").member("a")
        a.acquired()
        for offset in (0, 2, 4, 6, 8):
            a.acknowledge((offset, offset, ACCEPT))
        until = time.monotonic() + 10
        while first_offset(link) < 5 and time.monotonic() < until:
            time.sleep(0.05)
        assert first_offset(link) >= 5
        a.close()
    with EmbeddedBroker(directory=tmp_path, settings=SETTINGS) as broker:
        a = ShareMember(broker.bootstrap, "short", "a", "short")
        a.join()
        assert [first for first, _, _ in a.acquired()] == [1, 3, 5, 7, 9]
        a.close()


def test_acknowledgements_survive_a_restart(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(directory=tmp_path, settings=SETTINGS) as broker,
        WireLink(broker.bootstrap) as link,
    ):
        a = Stage(broker, link, "kept").member("a")
        a.acquired()
        a.acknowledge((0, 1, ACCEPT), (2, 2, RELEASE), (4, 6, ACCEPT))
        a.close()
    with EmbeddedBroker(directory=tmp_path, settings=SETTINGS) as broker:
        a = ShareMember(broker.bootstrap, "kept", "a", "kept")
        a.join()
        assert a.acquired() == [(2, 2, 2), (3, 3, 1), (7, 9, 1)]
        a.close()


def test_a_missing_topic_does_not_stop_a_fetch_from_waiting_for_others(stage: Stage) -> None:
    a = stage.member("a")
    a.acquired()
    gone = FetchTopic(Uuid(b"z" * 16), [FetchPartition(0, [])])
    began = time.monotonic()
    reply = stage.link.ask(
        ShareFetchRequest(
            group_id=stage.name,
            member_id="b",
            max_wait_ms=400,
            min_bytes=1,
            max_records=10,
            batch_size=10,
            topics=[gone, FetchTopic(a.topic_id, [FetchPartition(0, [])])],
        )
    )
    assert isinstance(reply, ShareFetchResponse)
    assert time.monotonic() - began > 0.35
    assert {each.error_code for each in parts(reply)} == {0, ErrorCode.UNKNOWN_TOPIC_ID}


def test_the_reason_why_a_partition_is_not_loaded_is_reported_even_if_late(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator of the state may be another broker, so that its response arrives later."""

    def call(persister: Persister, call: Any, then: Any) -> None:
        persister._tasks.create_task(persister._later(call, None, then))

    monkeypatch.setattr(Persister, "call", call)
    member = ShareMember(stage.broker.bootstrap, f"{stage.name}-2", "a", stage.name)
    stage.members.append(member)
    (part,) = parts(member.fetch(wait_ms=10_000))
    assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert part.error_message.endswith("is not initialized")


def test_requests_are_served_during_a_search_for_the_start_by_timestamp(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = threading.Event(), threading.Event()

    async def slow(log: PartitionLog, requested: int, worker: Executor) -> Found:
        began.set()
        await asyncio.get_running_loop().run_in_executor(worker, may_end.wait, 30)
        return await search(log, requested, worker)

    monkeypatch.setattr(share_partitions, "search", slow)
    configure(stage.link, stage.name, share_auto_offset_reset="by_duration:PT1H")
    member = stage.member("a")
    with ThreadPoolExecutor(1) as thread:
        fetched = thread.submit(member.acquired, wait_ms=30_000)
        assert began.wait(30)
        assert isinstance(stage.link.ask(ListGroupsRequest()), ListGroupsResponse)
        may_end.set()
        assert fetched.result(30) == [(0, 9, 1)]


def test_a_byte_quota_applies_to_members_of_share_groups() -> None:
    ops = [quotas.OpData("consumer_byte_rate", 1.0)]
    limit = quotas.EntryData([quotas.EntityData("user", "ANONYMOUS")], ops)
    with EmbeddedBroker(settings=SETTINGS) as own, WireLink(own.bootstrap) as admin:
        make_topic(admin, "metered")
        produce(admin, "metered", 1)
        configure(admin, "metered", share_auto_offset_reset="earliest")
        member = ShareMember(own.bootstrap, "metered", "m1", "metered")
        member.join()
        admin.ask(quotas.AlterClientQuotasRequest(entries=[limit]))
        reply = member.fetch(wait_ms=5000)
        assert sum(len(each.acquired_records) for each in parts(reply)) == 1
        assert reply.throttle_time_ms > 1000
        member.close()
