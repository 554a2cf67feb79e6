"""How a leader and a follower answer clients and other brokers."""

import asyncio
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.broker.context import Services
from penstock.broker.coordination.coordinator_log import PartitionCoordinatorLog
from penstock.broker.produce.appending import TURN_BYTES
from penstock.broker.transaction.markers import ClusterMarkers, MarkerRound
from penstock.client.address import parse_addresses
from penstock.client.admin import delete_topic
from penstock.client.connection import Connection, connect
from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.coordinator.storage import RawRecord
from penstock.coordinator.transaction.completion import TransactionMarker
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.errors import ErrorCode
from penstock.log.lookup import LogSlice
from penstock.log.partition_log import PartitionLog
from penstock.log.truncation import truncate_to
from penstock.metadata.image import Broker, PartitionRegistration, Topic
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.record import Record
from penstock.replication.isr import FollowerFetch
from penstock.replication.isr_proposals import note_fetch
from penstock.testing.logs import batch_of
from penstock.types import BrokerId, LeaderEpoch
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.brokers.leading_broker import TOPIC, Leading, appended, code_of, produce, run

FETCH, LIST_OFFSETS = 1, 2


async def fetched(
    leader: Leading,
    connection: Connection,
    *,
    offset: int = 0,
    replica: int = -1,
    epoch: int = -1,
    rack: str = "",
) -> PartitionData:
    part = FetchPartition(
        partition=0, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1 << 20
    )
    topic = FetchTopic(topic=TOPIC, topic_id=leader.partition().topic_id, partitions=[part])
    request = FetchRequest(
        replica_id=replica,
        replica_state=ReplicaState(replica_id=replica, replica_epoch=-1),
        topics=[topic],
        rack_id=rack,
    )
    response = await connection.call(request, FetchResponse, timeout_ms=10_000)
    return response.responses[0].partitions[0]


async def listed(connection: Connection, timestamp: int, replica: int = -1) -> tuple[int, int]:
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=replica, topics=[ListOffsetsTopic(name=TOPIC, partitions=[part])]
    )
    response = await connection.call(request, ListOffsetsResponse, timeout_ms=10_000)
    (answer,) = response.topics[0].partitions
    return answer.error_code, answer.offset


@pytest.mark.row("A025", "A071")
def test_acks_all_waits_for_the_follower(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        leader.lead(0, 3)
        sent = produce(leader, connection)
        await appended(leader)
        assert not sent.done()
        note_fetch(leader.partition(), FollowerFetch(1, 1))
        assert await code_of(sent) == ErrorCode.NONE

    run(tmp_path, test)


@pytest.mark.row("A119")
def test_no_request_waits_longer_than_its_timeout(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        leader.lead(0, 3)
        sent = produce(leader, connection, timeout_ms=20)
        assert await code_of(sent) == ErrorCode.REQUEST_TIMED_OUT
        assert leader.partition().log.end_offset == 1

    run(tmp_path, test)


@pytest.mark.row("A076")
def test_too_few_replicas_are_reported_before_and_after_the_append(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        partition = leader.partition()
        partition.lead(3, (0, 1), (0, 1), 8)
        sent = produce(leader, connection)
        await appended(leader)
        note_fetch(
            partition, FollowerFetch(1, 1)
        )  # committed, and then the follower leaves at once
        partition.lead(4, (0,), (0, 1), 9)
        assert await code_of(sent) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert await code_of(produce(leader, connection)) == ErrorCode.NOT_ENOUGH_REPLICAS
        assert partition.log.end_offset == 1

    run(tmp_path, test, {"min.insync.replicas": "2"})


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_leader_that_resigns_answers_all_waiting_requests(
    tmp_path: Path, comes_back: bool
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        partition = leader.partition()
        leader.lead(0, 3)
        sent = produce(leader, connection)
        await appended(leader)
        partition.follow(1, 4, (0, 1), 20)
        if comes_back:  # within one turn of the loop; the log may have changed meanwhile
            partition.lead(5, (0,), (0, 1), 21)
            assert partition.log.high_watermark == 1
        assert await code_of(sent) == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(tmp_path, test)


def test_a_leader_that_resigns_between_turns_of_a_request_does_not_acknowledge_it(
    tmp_path: Path,
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        may_go_on = threading.Event()
        leader.services.resources.worker.submit(may_go_on.wait, 30)
        partition = leader.partition()
        leader.lead(0, 3)
        large = build_batch([Record(0, 0, None, bytes(TURN_BYTES), [])], codec=Codec.ZSTD)
        parts = [
            PartitionProduceData(index=index, records=memoryview(batch))
            for index, batch in enumerate((batch_of(b"lost"), large))
        ]
        topic = TopicProduceData(name=TOPIC, topic_id=partition.topic_id, partition_data=parts)
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
        sent = connection.send(request, ProduceResponse)
        await appended(leader)
        partition.follow(1, 4, (0, 1), 20)
        truncate_to(partition.log, 0)
        partition.lead(5, (0,), (0, 1), 21)
        leader.append(b"of another leader")
        assert partition.log.high_watermark == 1
        may_go_on.set()
        answers = (await sent).responses[0].partition_responses
        assert [each.error_code for each in answers] == [
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.NONE,
        ]

    run(tmp_path, test, partitions=2)


def test_deleting_a_topic_leaves_no_producer_waiting(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        leader.lead(0, 3)
        sent = produce(leader, connection)
        await appended(leader)
        await delete_topic(leader.client, TOPIC)
        async with asyncio.timeout(10):
            assert await code_of(sent) == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(tmp_path, test)


def test_a_follower_reads_to_the_end_and_a_consumer_to_the_high_watermark(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        leader.lead(0, 3)
        leader.append(b"a")
        leader.append(b"b")
        assert len((await fetched(leader, connection)).records or b"") == 0
        data = await fetched(leader, connection, replica=1, epoch=3)
        assert len(data.records or b"") == leader.partition().log.size_bytes
        await fetched(leader, connection, replica=1, epoch=3, offset=1)
        assert leader.partition().followers[1].end_offset == 1
        data = await fetched(leader, connection)
        assert (data.high_watermark, data.error_code) == (1, 0)
        assert 0 < len(data.records or b"") < leader.partition().log.size_bytes
        # Between the high watermark and the end there is nothing yet; past the end is out of range.
        assert (await fetched(leader, connection, offset=2)).error_code == 0
        past = await fetched(leader, connection, offset=3)
        assert past.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("replica", "epoch", "code"),
    [
        (1, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (1, 4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (9, 3, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (9, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (-1, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (-1, 4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_stale_epochs_and_unknown_replicas_are_refused(
    tmp_path: Path, replica: int, epoch: int, code: ErrorCode
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        leader.lead(0, 3)
        leader.append(b"a")
        data = await fetched(leader, connection, replica=replica, epoch=epoch, offset=1)
        assert data.error_code == code
        assert leader.partition().followers[1].end_offset == -1

    run(tmp_path, test)


def test_a_fetch_as_a_replica_is_refused_on_the_clients_listener(tmp_path: Path) -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,CLIENT://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }

    async def test(leader: Leading, _: Connection) -> None:
        leader.lead(0, 3)
        leader.append(b"a")
        (address,) = parse_addresses(leader.state.listeners["CLIENT"])
        outside = await connect(address, client_id="test")
        data = await fetched(leader, outside, replica=1, epoch=3, offset=1)
        assert data.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert leader.partition().log.high_watermark == 0
        assert await listed(outside, -1, replica=1) != (0, 1)
        await outside.close()

    run(tmp_path, test, settings)


@pytest.mark.parametrize(
    ("version", "code"),
    [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)],
)
def test_the_latest_offset_is_not_available_until_the_follower_has_fetched(
    tmp_path: Path, version: int, code: ErrorCode
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        leader.lead(0, 3)
        leader.append(b"a")
        leader.lead(0, 4)
        connection.versions[LIST_OFFSETS] = version
        assert await listed(connection, -1) == (code, -1)
        assert await listed(connection, 10**15) == (code, -1)
        assert await listed(connection, -2) == (0, 0)
        assert await listed(connection, -1, replica=1) == (0, 1)
        note_fetch(leader.partition(), FollowerFetch(1, 1))
        assert await listed(connection, -1) == (0, 1)

    run(tmp_path, test)


def test_deleted_records_are_deleted_from_every_live_replica(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        cluster = leader.services.cluster
        other = Broker(BrokerId(1), 7, ())
        cluster.image = replace(cluster.image, brokers={**cluster.image.brokers, other.id: other})
        leader.lead(0, 3)
        leader.append(b"a")
        note_fetch(leader.partition(), FollowerFetch(1, 1, 0, 7))
        topic = DeleteRecordsTopic(
            name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=1)]
        )
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=30_000)
        sent = connection.send(request, DeleteRecordsResponse)
        async with asyncio.timeout(10):
            while leader.partition().log.log_start_offset < 1:
                await asyncio.sleep(0)
        assert not sent.done()
        note_fetch(leader.partition(), FollowerFetch(1, 1, 1, 7))
        (answer,) = (await sent).topics[0].partitions
        assert (answer.error_code, answer.low_watermark) == (0, 1)
        late = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)]
                )
            ],
            timeout_ms=10,
        )
        leader.append(b"b")
        note_fetch(leader.partition(), FollowerFetch(1, 2, 1, 7))
        (answer,) = (await connection.send(late, DeleteRecordsResponse)).topics[0].partitions
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT

    run(tmp_path, test)


def markers_of(services: Services) -> ClusterMarkers:
    return ClusterMarkers(
        services.broker_id,
        services.cluster,
        services.replicas.partitions,
        services.coordination.markers,
        services.waiters,
        lambda broker, marker: pytest.fail(f"{marker} goes to {broker}"),
    )


def test_a_marker_that_its_leader_may_have_lost_is_written_again(tmp_path: Path) -> None:
    async def test(leader: Leading, _: Connection) -> None:
        leader.lead(0, 3)
        partition = leader.partition()
        marker = TransactionMarker(producer_id=1, producer_epoch=0, committed=True)
        services = leader.services
        state = services.replicas.partitions.create("state", 0, partition.topic_id, 0, is_new=True)
        state.lead(0, (0,))
        round_ = MarkerRound(markers_of(services), marker, [partition.topic_partition], state)
        assert not round_.attempt()
        partition.follow(1, 4, (0, 1), 20)
        assert not round_.attempt(), "nobody leads here"
        partition.lead(5, (0, 1), (0, 1), 21)
        note_fetch(partition, FollowerFetch(1, 1))
        assert partition.log.high_watermark == 1
        assert not round_.attempt(), "the first one may not be what was committed"
        assert partition.log.end_offset == 2
        note_fetch(partition, FollowerFetch(1, 2))
        assert round_.attempt()

    run(tmp_path, test)


def test_a_transaction_ends_although_one_of_its_topics_is_deleted(tmp_path: Path) -> None:
    """The marker is written to the topic but never committed: broker 1 does not fetch."""

    async def test(leader: Leading, _: Connection) -> None:
        leader.lead(0, 3)
        partition, services = leader.partition(), leader.services
        state = services.replicas.partitions.create(TRANSACTION_STATE, 0, partition.topic_id, 0)
        state.lead(0, (0,))
        ended = asyncio.Event()
        markers_of(services).write(
            TransactionMarker(producer_id=1, producer_epoch=0, committed=True),
            [partition.topic_partition],
            0,
            ended.set,
        )
        assert partition.log.end_offset == 1
        await delete_topic(leader.client, TOPIC)
        async with asyncio.timeout(10):
            await ended.wait()

    run(tmp_path, test)


def test_a_coordinator_does_not_mistake_a_new_leaders_record_for_its_own(tmp_path: Path) -> None:
    async def test(leader: Leading, _: Connection) -> None:
        leader.lead(0, 3)
        partition, services = leader.partition(), leader.services
        log = PartitionCoordinatorLog(partition, services.waiters, Codec.NONE)
        end = log.append([RawRecord(b"key", b"value")], 0)
        reported: list[int] = []
        log.when_committed(end, lambda: reported.append(end))
        partition.follow(1, 4, (0, 1), 20)
        partition.update_from_leader(end, 0)
        assert not log.is_committed(end)
        for _turn in range(5):
            await asyncio.sleep(0)
        assert reported == []

    run(tmp_path, test)


def test_consumers_that_support_it_may_read_from_a_follower(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        partition = leader.partition()
        leader.append(b"a")
        leader.append(b"b")
        partition.follow(1, 3, (0, 1), 20)
        data = await fetched(leader, connection, epoch=3)
        assert (data.error_code, data.high_watermark) == (0, 2)
        assert len(data.records or b"") > 0
        assert (await fetched(leader, connection, epoch=2)).error_code == (
            ErrorCode.FENCED_LEADER_EPOCH
        )
        refused, _ = await listed(connection, -1)
        assert refused == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await listed(connection, -1, replica=-2) == (0, 2)
        connection.versions[FETCH] = 10
        data = await fetched(leader, connection)
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("selector", "rack", "preferred"),
    [
        ("org.apache.kafka.common.replica.RackAwareReplicaSelector", "b", 1),
        ("org.apache.kafka.common.replica.RackAwareReplicaSelector", "a", -1),
        ("org.apache.kafka.common.replica.RackAwareReplicaSelector", "", -1),
        ("", "b", -1),
    ],
)
def test_a_consumer_is_directed_to_the_replica_in_its_rack(
    tmp_path: Path, selector: str, rack: str, preferred: int
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        cluster = leader.services.cluster
        there = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.2", 9092)
        other = Broker(BrokerId(1), 7, (there,), "b")
        cluster.image = replace(cluster.image, brokers={**cluster.image.brokers, other.id: other})
        leader.lead(0, 3)
        leader.append(b"a")
        note_fetch(leader.partition(), FollowerFetch(1, 1, 0))
        data = await fetched(leader, connection, rack=rack)
        assert (data.error_code, data.preferred_read_replica) == (0, preferred)
        assert (len(data.records or b"") == 0) is (preferred == 1)

    settings = {"broker.rack": "a"} | ({"replica.selector.class": selector} if selector else {})
    run(tmp_path, test, settings)


@pytest.mark.row("A014")
def test_not_leader_names_the_current_leader_and_its_address(tmp_path: Path) -> None:
    """KIP-951: the client need not request metadata first."""

    async def test(leader: Leading, connection: Connection) -> None:
        cluster, partition = leader.services.cluster, leader.partition()
        there = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.2", 9092)
        other = Broker(BrokerId(1), 7, (there,), "b")
        topic = cluster.image.topics[TOPIC]
        led = PartitionRegistration(
            (BrokerId(0), other.id), leader=other.id, leader_epoch=LeaderEpoch(5)
        )
        cluster.image = replace(
            cluster.image,
            brokers={**cluster.image.brokers, other.id: other},
            topics={**cluster.image.topics, TOPIC: Topic(TOPIC, topic.id, {0: led})},
        )
        partition.follow(1, 5, (0, 1), 20)
        produced = await produce(leader, connection)
        answer = produced.responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 5)
        assert [(n.node_id, n.host, n.port, n.rack) for n in produced.node_endpoints] == [
            (1, "127.0.0.2", 9092, "b")
        ]
        part = FetchPartition(partition=0, fetch_offset=0, current_leader_epoch=3)
        request = FetchRequest(
            topics=[FetchTopic(topic_id=partition.topic_id, partitions=[part])], max_bytes=1
        )
        response = await connection.send(request, FetchResponse)
        data = response.responses[0].partitions[0]
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (1, 5)
        assert [(n.node_id, n.host, n.port) for n in response.node_endpoints] == [
            (1, "127.0.0.2", 9092)
        ]

    run(tmp_path, test)


def test_bytes_are_counted_once_when_sent_and_only_for_consumers(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        partition = leader.partition()
        leader.append(b"a")
        size = partition.log.size_bytes
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            topics=[FetchTopic(topic_id=partition.topic_id, partitions=[part])],
            max_bytes=1 << 20,
            min_bytes=3 * size,
            max_wait_ms=30_000,
        )
        sent = connection.send(request, FetchResponse)
        while not len(leader.services.waiters):
            await asyncio.sleep(0)
        leader.append(b"b")
        leader.append(b"c")
        await sent
        assert (partition.bytes_out, partition.replication_bytes_out) == (3 * size, 0)
        leader.lead(0, 3)
        await fetched(leader, connection, replica=1, epoch=3)
        assert (partition.bytes_out, partition.replication_bytes_out) == (3 * size, 3 * size)

    run(tmp_path, test)


@pytest.mark.pure
def test_a_fetch_that_waits_for_many_bytes_checks_only_changed_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Counter[int] = Counter()
    plain = PartitionLog.read

    def counted(log: PartitionLog, *args: Any, **more: Any) -> LogSlice | None:
        read[log.topic_partition.partition] += 1
        return plain(log, *args, **more)

    async def test(leader: Leading, connection: Connection) -> None:
        for index in range(2):
            leader.append(b"a", index=index)
        monkeypatch.setattr(PartitionLog, "read", counted)
        size = leader.partition().log.size_bytes
        parts = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in range(2)
        ]
        request = FetchRequest(
            topics=[FetchTopic(topic_id=leader.partition().topic_id, partitions=parts)],
            max_bytes=1 << 20,
            min_bytes=5 * size,
            max_wait_ms=30_000,
        )
        sent = connection.send(request, FetchResponse)
        while not len(leader.services.waiters):
            await asyncio.sleep(0)
        for _ in range(2):
            leader.append(b"b")
            before = read[0]
            while read[0] == before:
                await asyncio.sleep(0)
        assert read == {0: 3, 1: 1}
        leader.append(b"c")
        (topic,) = (await sent).responses
        assert [len(cast("bytes", each.records)) for each in topic.partitions] == [4 * size, size]

    run(tmp_path, test, partitions=2)
