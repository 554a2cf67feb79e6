"""Transactions whose coordinator, or whose partitions, are on another broker."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import msgspec
import pytest

from penstock.broker.produce.appending import TURN_BYTES
from penstock.broker.transaction.marker_outbox import RemoteMarker
from penstock.broker.transaction.markers import RETRY_MS, ClusterMarkers
from penstock.broker.transaction.verifier import error_for_producer, retriable_by_producers
from penstock.client.connection import Connection, connect
from penstock.client.errors import BrokerRefused
from penstock.coordinator.keys import partition_for
from penstock.coordinator.transaction.completion import TransactionMarker
from penstock.errors import ErrorCode
from penstock.record.batch import read_header
from penstock.record.build import build_batch, numbered
from penstock.record.compression import Codec
from penstock.replication.errors import NotLeader
from penstock.replication.isr import FollowerFetch
from penstock.replication.isr_proposals import note_fetch
from penstock.replication.partition import Partition
from penstock.testing.logs import batch_of
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from penstock.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from support.brokers.leading_broker import TOPIC, Leading, leading

PRODUCE, ADD_PARTITIONS_TO_TXN, END_TXN = 0, 24, 26
NAME, STATE = "writer", "__transaction_state"
SETTINGS = {"transaction.state.log.num.partitions": "2"}
OTHER, THIRD = BrokerId(1), BrokerId(2)
Test = Callable[[Leading, Connection], Awaitable[None]]


def run(folder: Path, test: Test) -> None:
    async def main() -> None:
        async with leading(folder, settings=SETTINGS) as leader:
            connection = await connect(leader.address, client_id="test")
            try:
                await test(leader, connection)
            finally:
                await connection.close()

    asyncio.run(main())


async def begun(connection: Connection) -> InitProducerIdResponse:
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=[NAME])
    await connection.call(find, FindCoordinatorResponse, timeout_ms=10_000)
    init = InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=60_000)
    return await connection.call(init, InitProducerIdResponse, timeout_ms=10_000)


def state_of(leader: Leading) -> Partition:
    return leader.services.replicas.partitions.get(STATE, partition_for(NAME, 2))


def with_follower(leader: Leading) -> Partition:
    """The coordinator's partition, whose records are committed only when the test fetches them."""
    state = state_of(leader)
    state.lead(state.leader_epoch, (0, 1), (0, 1), state.partition_epoch + 1)
    return state


def produce(
    leader: Leading,
    connection: Connection,
    producer: InitProducerIdResponse,
    value: bytes,
    sequence: int = 0,
    codec: Codec = Codec.NONE,
) -> asyncio.Future[ProduceResponse]:
    batch = build_batch(
        numbered([(None, value)], 0),
        codec=codec,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=sequence,
        transactional=True,
    )
    part = PartitionProduceData(index=0, records=memoryview(batch))
    topic = TopicProduceData(
        name=TOPIC, topic_id=leader.partition().topic_id, partition_data=[part]
    )
    request = ProduceRequest(transactional_id=NAME, acks=-1, timeout_ms=30_000, topic_data=[topic])
    return connection.send(request, ProduceResponse)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def code_of(sent: asyncio.Future[ProduceResponse]) -> int:
    return (await sent).responses[0].partition_responses[0].error_code


def test_a_write_waits_until_its_partition_in_the_transaction_is_committed(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        producer = await begun(connection)
        state, log = with_follower(leader), leader.partition().log
        before = state.log.end_offset
        sent = produce(leader, connection, producer, b"first")
        # The next request overwrites the buffer that held the first one.
        after = produce(leader, connection, producer, b"x" * 50_000, sequence=1)
        await until(lambda: state.log.end_offset > before)
        assert log.end_offset == 0
        note_fetch(state, FollowerFetch(1, state.log.end_offset))
        leader.services.waiters.changed(state.topic_partition)
        assert await code_of(sent) == ErrorCode.NONE
        found = log.read(0, 1000, up_to=1)
        assert found is not None
        assert b"first" in found.read()
        assert await code_of(after) == ErrorCode.NONE
        assert log.end_offset == 2
        assert not len(leader.services.coordination.verifier.pending)

    run(tmp_path, test)


def test_a_large_batch_is_refused_if_its_transaction_ends_during_the_check(
    tmp_path: Path,
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        # As older clients, which keep their epoch from transaction to transaction.
        connection.versions |= {PRODUCE: 11, ADD_PARTITIONS_TO_TXN: 3, END_TXN: 4}
        producer, log = await begun(connection), leader.partition().log
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=NAME,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
        )
        await connection.call(add, AddPartitionsToTxnResponse, timeout_ms=10_000)
        may_go_on = threading.Event()
        worker = cast("ThreadPoolExecutor", leader.services.resources.worker)
        waiting = worker.submit(may_go_on.wait, 30)
        await until(waiting.running)
        sent = produce(leader, connection, producer, bytes(TURN_BYTES), codec=Codec.ZSTD)
        await until(lambda: worker._work_queue.qsize() > 0)
        end = EndTxnRequest(
            transactional_id=NAME,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=False,
        )
        other = await connect(leader.address, client_id="test")
        other.versions |= connection.versions
        ended = await other.call(end, EndTxnResponse, timeout_ms=10_000)
        await other.close()
        assert ended.error_code == ErrorCode.NONE
        may_go_on.set()
        assert await code_of(sent) == ErrorCode.TRANSACTION_ABORTABLE
        await until(lambda: log.high_watermark == log.end_offset)
        assert log.last_stable_offset == log.end_offset

    run(tmp_path, test)


def test_a_marker_during_the_verification_rejects_the_write(
    tmp_path: Path,
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        producer = await begun(connection)
        state, partition = with_follower(leader), leader.partition()
        before = state.log.end_offset
        sent = produce(leader, connection, producer, b"late")
        await until(lambda: state.log.end_offset > before)
        marker = TransactionMarker(producer.producer_id, producer.producer_epoch, committed=False)
        leader.services.coordination.markers.append(partition.topic_partition, marker, 0)
        note_fetch(state, FollowerFetch(1, state.log.end_offset))
        leader.services.waiters.changed(state.topic_partition)
        assert await code_of(sent) == ErrorCode.NOT_ENOUGH_REPLICAS
        assert partition.log.end_offset == 1, "the marker alone"

    run(tmp_path, test)


def test_markers_follow_their_partition_from_leader_to_leader(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        await begun(connection)
        services, where = leader.services, TopicPartition(TOPIC, 0)
        leader.partition().follow(OTHER, 1, (0, 1), 20)
        sent: list[tuple[BrokerId, RemoteMarker]] = []
        markers = ClusterMarkers(
            services.broker_id,
            services.cluster,
            services.replicas.partitions,
            services.coordination.markers,
            services.waiters,
            lambda broker, marker: sent.append((broker, marker)),
        )
        done: list[bool] = []
        led_by(leader, OTHER)
        marker = TransactionMarker(7, 0, committed=True)
        markers.write(
            marker, [where], state_of(leader).topic_partition.partition, lambda: done.append(True)
        )
        assert [broker for broker, _ in sent] == [OTHER]
        led_by(leader, THIRD)
        sent[0][1].answered(where, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        await until(lambda: len(sent) == 2)
        assert sent[1][0] == THIRD
        assert not done
        sent[1][1].answered(where, ErrorCode.NONE)
        await until(lambda: bool(done))

        # A broker that no longer coordinates leaves the marker to its successor.
        markers.write(
            marker, [where], state_of(leader).topic_partition.partition, lambda: done.append(True)
        )
        state = state_of(leader)
        state.follow(OTHER, state.leader_epoch + 1, (0, 1), state.partition_epoch + 1)
        sent[2][1].answered(where, ErrorCode.NETWORK_EXCEPTION)
        async with asyncio.timeout(10):
            while len(services.waiters):
                await asyncio.sleep(RETRY_MS / 1000)
        assert (len(sent), done) == (3, [True])

    run(tmp_path, test)


def test_only_a_leader_reports_that_a_marker_is_too_late(tmp_path: Path) -> None:
    async def test(leader: Leading, _: Connection) -> None:
        partition = leader.partition()
        batch = batch_of(b"x", producer_id=7, sequence=0, transactional=True)
        partition.append(batch, read_header(batch), 1, 0)
        partition.follow(OTHER, 1, (0, 1), 20)
        late = TransactionMarker(7, 0, committed=True, bumps_epoch=True)
        with pytest.raises(NotLeader):
            leader.services.coordination.markers.append(partition.topic_partition, late, 0)

    run(tmp_path, test)


def test_a_marker_refused_by_a_newer_epoch_counts_once_the_log_before_it_is_replicated(
    tmp_path: Path,
) -> None:
    """The coordinator retries: its first marker is in the leader's log, but not replicated yet."""

    async def test(leader: Leading, connection: Connection) -> None:
        await begun(connection)
        services, partition = leader.services, leader.partition()
        leader.lead(0, partition.leader_epoch + 1)
        where = partition.topic_partition
        services.coordination.markers.append(
            where, TransactionMarker(7, 5, committed=True, bumps_epoch=True), 0
        )
        markers = ClusterMarkers(
            services.broker_id,
            services.cluster,
            services.replicas.partitions,
            services.coordination.markers,
            services.waiters,
            lambda *_: None,
        )
        done: list[bool] = []
        markers.write(
            TransactionMarker(7, 4, committed=True),
            [where],
            state_of(leader).topic_partition.partition,
            lambda: done.append(True),
        )
        topic = WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])
        marker = WritableTxnMarker(
            producer_id=7, producer_epoch=4, transaction_result=True, topics=[topic]
        )
        asked = connection.send(
            WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse, version=1
        )
        await until(lambda: len(services.waiters) == 2)
        assert (done, asked.done()) == ([], False)
        note_fetch(partition, FollowerFetch(1, partition.log.end_offset))
        services.waiters.changed(where)
        reported = (await asked).markers[0].topics[0].partitions[0]
        assert reported.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        await until(lambda: bool(done))
        assert partition.log.end_offset == 1, "the first marker alone"

    run(tmp_path, test)


def led_by(leader: Leading, broker: BrokerId) -> None:
    cluster = leader.services.cluster
    topic = cluster.image.topics[TOPIC]
    partition = msgspec.structs.replace(topic.partitions[0], leader=broker)
    moved = msgspec.structs.replace(topic, partitions={0: partition})
    cluster.image = replace(cluster.image, topics={**cluster.image.topics, TOPIC: moved})


@pytest.mark.parametrize(
    ("code", "reported"),
    [
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.NETWORK_EXCEPTION, None),
        (ErrorCode.NOT_COORDINATOR, None),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    ],
)
def test_a_remote_coordinators_error_is_returned_like_a_local_one(
    code: ErrorCode, reported: ErrorCode | None
) -> None:
    """`reported` is None if the producer should retry."""
    refused = BrokerRefused(code, "the coordinator")
    assert retriable_by_producers(refused) is (reported is None)
    if reported is not None:
        assert error_for_producer(refused, knows_abortable=False).code is reported
