"""Our client against the real Kafka, with librdkafka on the other side where it can be."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import pytest
from confluent_kafka import Consumer
from confluent_kafka import Producer as RdProducer
from confluent_kafka import TopicPartition as RdTopicPartition

from peers.kafka import KafkaCluster
from penstock.client.address import parse_addresses
from penstock.client.admin import (
    NewTopic,
    create_partitions,
    create_topic,
    delete_topic,
    describe_cluster,
    describe_topics,
    list_topics,
)
from penstock.client.cluster import Client
from penstock.client.configs import (
    Resource,
    ResourceType,
    Source,
    alter_configs,
    describe_configs,
)
from penstock.client.consume import Consumed, Reader
from penstock.client.offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    Isolation,
    delete_records,
    list_offsets,
)
from penstock.client.produce import Delivered, NewRecord, Producer
from penstock.client.refusal import BrokerRefused, ConnectionFailed, NoAnswer, check
from penstock.client.route import ToCoordinator, ToLeader
from penstock.errors import ErrorCode
from penstock.record.compression import Codec
from penstock.types import BrokerId, Offset, TopicPartition
from penstock.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse

pytestmark = pytest.mark.peer
T = TypeVar("T")
START = Offset(0)


def run(
    kafka: KafkaCluster, scenario: Callable[[Client], Awaitable[T]], timeout_ms: int = 20_000
) -> T:
    """Run a scenario with a client of its own; nothing may be left in the loop behind it."""

    async def main() -> T:
        async with Client(parse_addresses(kafka.bootstrap), timeout_ms=timeout_ms) as client:
            result = await scenario(client)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(main())


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Brokers learn of topics some time after the controller has answered."""
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.02)


async def partitions(client: Client, name: str) -> int:
    topics = {each.name: each for each in await list_topics(client)}
    return len(topics[name].partitions) if name in topics else 0


async def has_partitions(client: Client, name: str, count: int) -> None:
    async def reached() -> bool:
        return await partitions(client, name) == count

    await eventually(reached)


@pytest.fixture
def topic(kafka: KafkaCluster) -> str:
    """A topic of its own for the test, with three partitions."""
    name = f"client-{uuid4().hex[:8]}"

    async def create(client: Client) -> None:
        await create_topic(client, NewTopic(name=name, partitions=3))
        await has_partitions(client, name, 3)

    run(kafka, create)
    return name


async def everything(
    client: Client, topic: str, isolation: Isolation = Isolation.READ_UNCOMMITTED
) -> list[Consumed]:
    described = (await describe_topics(client, [topic]))[0]
    places = [TopicPartition(topic, index) for index in described.partitions]
    latest = await list_offsets(client, dict.fromkeys(places, LATEST), isolation=isolation)
    ends = {place: listed.offset for place, listed in latest.items()}
    starts = dict.fromkeys(places, START)
    async with Reader(client, starts, ends=ends, isolation=isolation) as reader:
        return [each async for each in reader]


def refusal(kafka: KafkaCluster, scenario: Callable[[Client], Awaitable[object]]) -> BrokerRefused:
    with pytest.raises(BrokerRefused) as caught:
        run(kafka, scenario)
    return caught.value


def test_the_cluster_names_its_broker_and_controller(kafka: KafkaCluster) -> None:
    cluster = run(kafka, describe_cluster)
    assert list(cluster.brokers) == [0]
    assert cluster.controller == 0
    assert str(cluster.brokers[cluster.controller].address) == kafka.bootstrap
    assert cluster.id


def test_a_topic_is_created_described_listed_grown_and_deleted(kafka: KafkaCluster) -> None:
    name = f"lifecycle-{uuid4().hex[:8]}"

    async def scenario(client: Client) -> None:
        made = await create_topic(client, NewTopic(name=name, partitions=2, replication_factor=1))
        assert (made.name, made.partitions, made.replication_factor) == (name, 2, 1)
        await has_partitions(client, name, 2)
        (described,) = await describe_topics(client, [name])
        assert described.id == made.id
        assert list(described.partitions) == [0, 1]
        assert described.partitions[1].isr == (0,)
        await create_partitions(client, name, 4)
        await has_partitions(client, name, 4)
        await delete_topic(client, name)
        await has_partitions(client, name, 0)

    run(kafka, scenario)


def test_a_topic_takes_assignments_and_configs(kafka: KafkaCluster) -> None:
    name = f"assigned-{uuid4().hex[:8]}"
    new = NewTopic(name=name, assignments=[[BrokerId(0)]] * 2, configs={"retention.ms": "1000"})

    async def scenario(client: Client) -> str | None:
        assert (await create_topic(client, new)).partitions == 2
        await has_partitions(client, name, 2)
        configs = await describe_configs(client, Resource(ResourceType.TOPIC, name))
        return configs["retention.ms"].value

    assert run(kafka, scenario) == "1000"


def test_refusals_carry_the_brokers_code_and_words(kafka: KafkaCluster, topic: str) -> None:
    exists = refusal(kafka, lambda client: create_topic(client, NewTopic(name=topic)))
    assert exists.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert topic in str(exists)
    many = NewTopic(name="too-many-replicas", replication_factor=9)
    wrong = refusal(kafka, lambda client: create_topic(client, many))
    assert wrong.code is ErrorCode.INVALID_REPLICATION_FACTOR
    missing = refusal(kafka, lambda client: delete_topic(client, "never-made"))
    assert missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    unknown = refusal(kafka, lambda client: describe_topics(client, ["never-made"]))
    assert unknown.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_validated_topic_is_not_made(kafka: KafkaCluster) -> None:
    async def scenario(client: Client) -> list[str]:
        await create_topic(client, NewTopic(name="only-validated"), validate_only=True)
        return [each.name for each in await list_topics(client)]

    assert "only-validated" not in run(kafka, scenario)


def test_a_setting_is_changed_and_taken_back(kafka: KafkaCluster, topic: str) -> None:
    resource = Resource(ResourceType.TOPIC, topic)

    async def scenario(client: Client) -> None:
        await alter_configs(client, resource, {"segment.bytes": "1048576"})
        entry = (await describe_configs(client, resource, names=["segment.bytes"]))["segment.bytes"]
        assert (entry.value, entry.source) == ("1048576", Source.DYNAMIC_TOPIC_CONFIG)
        assert entry.synonyms[-1].source is Source.DEFAULT_CONFIG
        await alter_configs(client, resource, {"segment.bytes": None})
        entry = (await describe_configs(client, resource))["segment.bytes"]
        assert (entry.value, entry.source) == ("1073741824", Source.DEFAULT_CONFIG)
        broker = await describe_configs(
            client, Resource(ResourceType.BROKER, "0"), documentation=True
        )
        assert broker["log.dirs"].source is Source.STATIC_BROKER_CONFIG
        assert broker["log.dirs"].is_read_only
        assert broker["log.dirs"].documentation

    run(kafka, scenario)
    wrong = refusal(kafka, lambda client: alter_configs(client, resource, {"segment.bytes": "x"}))
    assert wrong.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("codec", list(Codec))
def test_what_we_produce_librdkafka_reads(kafka: KafkaCluster, topic: str, codec: Codec) -> None:
    headers = [("trace", b"\x00\xff"), ("null", None)]
    records = [
        NewRecord(topic, b"v%d" % n * 50, key=b"k%d" % n, headers=headers, timestamp=1_000 + n)
        for n in range(50)
    ]
    records += [
        NewRecord(topic, None, key=b"tombstone", headers=[], timestamp=1),
        NewRecord(topic, b"placed", partition=2, headers=[], timestamp=2),
    ]

    async def scenario(client: Client) -> list[Delivered]:
        return await Producer(client, codec=codec, batch_bytes=1_000).send(records)

    delivered = run(kafka, scenario)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "unused"})
    consumer.assign([RdTopicPartition(topic, partition, 0) for partition in range(3)])
    read: dict[Delivered, tuple[object, ...]] = {}
    try:
        while len(read) < len(records):
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            place = Delivered(TopicPartition(topic, partition), Offset(offset))
            headers_read = message.headers() or []
            read[place] = (message.key(), message.value(), headers_read, message.timestamp()[1])
    finally:
        consumer.close()
    assert [read[place] for place in delivered] == [
        (each.key, each.value, each.headers, each.timestamp) for each in records
    ]
    assert delivered[-1].partition.partition == 2


def test_a_key_goes_where_the_java_partitioner_of_librdkafka_puts_it(
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

    async def scenario(client: Client) -> list[Delivered]:
        return await Producer(client).send(NewRecord(topic, b"", key=key) for key in keys)

    ours = run(kafka, scenario)
    assert [each.partition.partition for each in ours] == [theirs[key] for key in keys]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_librdkafka_produces_we_read(kafka: KafkaCluster, topic: str, codec: str) -> None:
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
        producer = Producer(client)
        sent = [(await producer.send([NewRecord(topic, b"x")]))[0] for _ in range(3)]
        return {each.partition.partition for each in sent}

    assert run(kafka, scenario) == {0, 1, 2}


def test_a_record_of_900_kb_goes_there_and_back(kafka: KafkaCluster, topic: str) -> None:
    large = bytes(range(256)) * 3_600

    async def scenario(client: Client) -> list[Consumed]:
        await Producer(client).send([NewRecord(topic, large), NewRecord(topic, b"small")])
        return await everything(client, topic)

    assert sorted(len(each.record.value or b"") for each in run(kafka, scenario)) == [5, len(large)]


def test_a_record_that_is_too_large_is_refused_and_the_next_one_is_not(
    kafka: KafkaCluster, topic: str
) -> None:
    async def scenario(client: Client) -> list[Delivered]:
        producer = Producer(client)
        await producer.send([NewRecord(topic, b"before", partition=0)])
        with pytest.raises(BrokerRefused) as caught:
            await producer.send([NewRecord(topic, bytes(2_000_000), partition=0)])
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        return await producer.send([NewRecord(topic, b"after", partition=0)])

    assert run(kafka, scenario) == [Delivered(TopicPartition(topic, 0), Offset(1))]


def test_a_missing_topic_is_made_only_on_request(kafka: KafkaCluster) -> None:
    name = f"auto-{uuid4().hex[:8]}"
    missing = refusal(kafka, lambda client: Producer(client).send([NewRecord(name, b"")]))
    assert missing.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def scenario(client: Client) -> list[Delivered]:
        return await Producer(client, create_topics=True).send([NewRecord(name, b"")])

    assert run(kafka, scenario) == [Delivered(TopicPartition(name, 0), START)]


def test_offsets_are_found_by_place_and_by_time(kafka: KafkaCluster, topic: str) -> None:
    place = TopicPartition(topic, 0)

    async def scenario(client: Client) -> None:
        times = [10_000, 30_000, 20_000]
        records = [NewRecord(topic, b"", partition=0, timestamp=time) for time in times]
        await Producer(client, batch_bytes=1).send(records)

        async def offset(at: int) -> int:
            return (await list_offsets(client, {place: at}))[place].offset

        assert [await offset(at) for at in (EARLIEST, LATEST, MAX_TIMESTAMP)] == [0, 3, 1]
        assert [await offset(at) for at in (9_000, 15_000, 30_000, 31_000)] == [0, 1, 1, -1]
        assert await delete_records(client, {place: Offset(2)}) == {place: 2}
        assert await offset(EARLIEST) == 2
        with pytest.raises(BrokerRefused) as caught:
            await Reader(client, {place: START}).poll()
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    run(kafka, scenario)


def test_a_reader_of_committed_records_sees_no_aborted_ones(
    kafka: KafkaCluster, topic: str
) -> None:
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
    committed = run(kafka, lambda client: everything(client, topic, Isolation.READ_COMMITTED))
    assert [each.record.value for each in committed] == [
        b"%d-%d" % (number, part) for number in (0, 2, 5) for part in range(3)
    ]
    every = run(kafka, lambda client: everything(client, topic))
    assert len(every) == 18


def test_a_reader_waits_for_records_to_come(kafka: KafkaCluster, topic: str) -> None:
    place = TopicPartition(topic, 1)

    async def scenario(client: Client) -> list[bytes | None]:
        async with Reader(client, {place: START}, max_wait_ms=10_000) as reader:
            async with asyncio.TaskGroup() as group:
                polled = group.create_task(reader.poll())
                async with asyncio.timeout(20):
                    while not reader._under_way:
                        await asyncio.sleep(0)
                async with Client(parse_addresses(kafka.bootstrap)) as other:
                    await Producer(other).send([NewRecord(topic, b"late", partition=1)])
            return [each.record.value for each in polled.result()]

    assert run(kafka, scenario) == [b"late"]


def test_coordinator_and_leader_are_found(kafka: KafkaCluster, topic: str) -> None:
    def raise_unless_missing(answer: DescribeGroupsResponse) -> None:
        if answer.groups[0].error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            check(answer.groups[0].error_code, "group nobody")

    async def scenario(client: Client) -> str:
        response = await client.call(
            DescribeGroupsRequest(groups=["nobody"]),
            DescribeGroupsResponse,
            to=ToCoordinator("nobody"),
            check=raise_unless_missing,
        )
        metadata = await client.call(
            MetadataRequest(topics=[]), MetadataResponse, to=ToLeader(TopicPartition(topic, 0))
        )
        assert metadata.controller_id == 0
        return response.groups[0].group_id

    assert run(kafka, scenario) == "nobody"


def test_requests_of_many_tasks_share_one_connection(kafka: KafkaCluster) -> None:
    async def scenario(client: Client) -> int:
        async with asyncio.TaskGroup() as group:
            calls = [
                group.create_task(client.call(MetadataRequest(topics=[]), MetadataResponse))
                for _ in range(50)
            ]
        assert all(call.result().cluster_id for call in calls)
        return len(client._connections)

    assert run(kafka, scenario) == 1


def test_a_restarted_broker_is_found_again(tmp_path: Path) -> None:
    with KafkaCluster(folder=tmp_path) as kafka:

        async def scenario(client: Client) -> list[Delivered]:
            producer = Producer(client, create_topics=True)
            await producer.send([NewRecord("kept", b"before")])
            await asyncio.to_thread(kafka.stop, 0)
            with pytest.raises((ConnectionFailed, NoAnswer)):
                await client.call(MetadataRequest(topics=[]), MetadataResponse, timeout_ms=300)
            await asyncio.to_thread(kafka.start, 0)
            return await producer.send([NewRecord("kept", b"after")])

        assert run(kafka, scenario) == [Delivered(TopicPartition("kept", 0), Offset(1))]
