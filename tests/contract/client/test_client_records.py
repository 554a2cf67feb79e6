"""Records between our client, the real Kafka and librdkafka."""

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer
from confluent_kafka import Producer as RdProducer
from confluent_kafka import TopicPartition as RdTopicPartition

from peers.kafka import KafkaCluster
from penstock.client.address import parse_addresses
from penstock.client.admin import describe_topics
from penstock.client.cluster import Client
from penstock.client.consume import ConsumedRecord, SimpleConsumer
from penstock.client.errors import BrokerRefused, ConnectionFailed, RequestTimedOut
from penstock.client.listing import LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducedRecord, ProducerRecord
from penstock.errors import ErrorCode
from penstock.record.compression import Codec
from penstock.types import Offset, TopicPartition
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from support.commands.client_runs import refusal, run

pytestmark = pytest.mark.peer
START = Offset(0)


async def everything(
    client: Client, topic: str, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
) -> list[ConsumedRecord]:
    described = (await describe_topics(client, [topic]))[0]
    places = [TopicPartition(topic, index) for index in described.partitions]
    latest = await list_offsets(client, dict.fromkeys(places, LATEST), isolation=isolation)
    ends = {place: listed.offset for place, listed in latest.items()}
    starts = dict.fromkeys(places, START)
    async with SimpleConsumer(client, starts, ends=ends, isolation=isolation) as reader:
        return [each async for each in reader]


@pytest.mark.parametrize("codec", list(Codec))
def test_librdkafka_reads_the_records_that_we_produce(
    kafka: KafkaCluster, topic: str, codec: Codec
) -> None:
    headers = [("trace", b"\x00\xff"), ("null", None)]
    records = [
        ProducerRecord(topic, b"v%d" % n * 50, key=b"k%d" % n, headers=headers, timestamp=1_000 + n)
        for n in range(50)
    ]
    records += [
        ProducerRecord(topic, None, key=b"tombstone", headers=[], timestamp=1),
        ProducerRecord(topic, b"placed", partition=2, headers=[], timestamp=2),
    ]

    async def scenario(client: Client) -> list[ProducedRecord]:
        return await IdempotentProducer(client, codec=codec, batch_bytes=1_000).send(records)

    delivered = run(kafka, scenario)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "unused"})
    consumer.assign([RdTopicPartition(topic, partition, 0) for partition in range(3)])
    read: dict[ProducedRecord, tuple[object, ...]] = {}
    try:
        while len(read) < len(records):
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            written = ProducedRecord(TopicPartition(topic, partition), Offset(offset))
            headers_read = message.headers() or []
            read[written] = (message.key(), message.value(), headers_read, message.timestamp()[1])
    finally:
        consumer.close()
    assert [read[each] for each in delivered] == [
        (each.key, each.value, each.headers, each.timestamp) for each in records
    ]
    assert delivered[-1].partition.partition == 2


def test_keys_go_to_the_partitions_that_librdkafkas_java_partitioner_chooses(
    kafka: KafkaCluster, topic: str
) -> None:
    keys = [b"key-%d" % n for n in range(40)]
    theirs = {}
    producer = RdProducer({"bootstrap.servers": kafka.bootstrap, "partitioner": "murmur2"})
    for key in keys:
        producer.produce(
            topic, b"", key, on_delivery=lambda _, m: theirs.update({m.key(): m.partition()})
        )
    assert producer.flush(20) == 0

    async def scenario(client: Client) -> list[ProducedRecord]:
        return await IdempotentProducer(client).send(
            ProducerRecord(topic, b"", key=key) for key in keys
        )

    ours = run(kafka, scenario)
    assert [each.partition.partition for each in ours] == [theirs[key] for key in keys]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_we_read_the_records_that_librdkafka_produces(
    kafka: KafkaCluster, topic: str, codec: str
) -> None:
    producer = RdProducer({"bootstrap.servers": kafka.bootstrap, "compression.type": codec})
    for n in range(200):
        producer.produce(topic, b"value-%d" % n * 10, b"k", partition=n % 3, timestamp=5_000 + n)
    assert producer.flush(20) == 0
    read = run(kafka, lambda client: everything(client, topic))
    for partition in range(3):
        mine = [each.record for each in read if each.partition.partition == partition]
        numbers = range(partition, 200, 3)
        assert [each.offset for each in mine] == list(range(len(numbers)))
        assert [each.value for each in mine] == [b"value-%d" % n * 10 for n in numbers]
        assert [each.timestamp for each in mine] == [5_000 + n for n in numbers]


def test_records_without_keys_reach_every_partition(kafka: KafkaCluster, topic: str) -> None:
    async def scenario(client: Client) -> set[int]:
        producer = IdempotentProducer(client)
        sent = [(await producer.send([ProducerRecord(topic, b"x")]))[0] for _ in range(3)]
        return {each.partition.partition for each in sent}

    assert run(kafka, scenario) == {0, 1, 2}


def test_a_record_of_900_kb_survives_a_round_trip(kafka: KafkaCluster, topic: str) -> None:
    large = bytes(range(256)) * 3_600

    async def scenario(client: Client) -> list[ConsumedRecord]:
        await IdempotentProducer(client).send(
            [ProducerRecord(topic, large), ProducerRecord(topic, b"small")]
        )
        return await everything(client, topic)

    assert sorted(len(each.record.value or b"") for each in run(kafka, scenario)) == [5, len(large)]


def test_a_too_large_record_is_rejected_and_the_next_one_is_not(
    kafka: KafkaCluster, topic: str
) -> None:
    async def scenario(client: Client) -> list[ProducedRecord]:
        producer = IdempotentProducer(client)
        await producer.send([ProducerRecord(topic, b"before", partition=0)])
        with pytest.raises(BrokerRefused) as caught:
            await producer.send([ProducerRecord(topic, bytes(2_000_000), partition=0)])
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        return await producer.send([ProducerRecord(topic, b"after", partition=0)])

    assert run(kafka, scenario) == [ProducedRecord(TopicPartition(topic, 0), Offset(1))]


def test_a_missing_topic_is_created_only_on_request(kafka: KafkaCluster) -> None:
    name = f"auto-{uuid4().hex[:8]}"
    missing = refusal(
        kafka, lambda client: IdempotentProducer(client).send([ProducerRecord(name, b"")])
    )
    assert missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def scenario(client: Client) -> list[ProducedRecord]:
        return await IdempotentProducer(client, create_topics=True).send(
            [ProducerRecord(name, b"")]
        )

    assert run(kafka, scenario) == [ProducedRecord(TopicPartition(name, 0), START)]


def test_read_committed_hides_aborted_records(kafka: KafkaCluster, topic: str) -> None:
    producer = RdProducer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{topic}-writer"}
    )
    producer.init_transactions(20)
    for number, end in enumerate([True, False, True, False, False, True]):
        producer.begin_transaction()
        for part in range(3):
            producer.produce(topic, b"%d-%d" % (number, part), partition=0)
        assert producer.flush(20) == 0
        if end:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
    committed = run(kafka, lambda client: everything(client, topic, IsolationLevel.READ_COMMITTED))
    assert [each.record.value for each in committed] == [
        b"%d-%d" % (number, part) for number in (0, 2, 5) for part in range(3)
    ]
    every = run(kafka, lambda client: everything(client, topic))
    assert len(every) == 18


def test_a_consumer_waits_for_records(kafka: KafkaCluster, topic: str) -> None:
    place = TopicPartition(topic, 1)

    async def scenario(client: Client) -> list[bytes | None]:
        async with SimpleConsumer(client, {place: START}, max_wait_ms=10_000) as reader:
            async with asyncio.TaskGroup() as group:
                polled = group.create_task(reader.poll())
                async with asyncio.timeout(20):
                    while not reader._in_flight:
                        await asyncio.sleep(0)
                async with Client(parse_addresses(kafka.bootstrap)) as other:
                    await IdempotentProducer(other).send(
                        [ProducerRecord(topic, b"late", partition=1)]
                    )
            return [each.record.value for each in polled.result()]

    assert run(kafka, scenario) == [b"late"]


def test_a_restarted_broker_is_found_again(tmp_path: Path) -> None:
    with KafkaCluster(folder=tmp_path) as kafka:

        async def scenario(client: Client) -> list[ProducedRecord]:
            producer = IdempotentProducer(client, create_topics=True)
            await producer.send([ProducerRecord("kept", b"before")])
            await asyncio.to_thread(kafka.stop, 0)
            with pytest.raises((ConnectionFailed, RequestTimedOut)):
                await client.call(MetadataRequest(topics=[]), MetadataResponse, timeout_ms=300)
            await asyncio.to_thread(kafka.start, 0)
            return await producer.send([ProducerRecord("kept", b"after")])

        assert run(kafka, scenario) == [ProducedRecord(TopicPartition("kept", 0), Offset(1))]
