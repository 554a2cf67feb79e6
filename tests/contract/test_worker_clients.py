"""What clients do with a broker, done with two workers: librdkafka, in a few seconds.

`make soak` also runs the scenarios of all clients with workers (`clients/brokers.py`).
"""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from peers.process import wait_until
from peers.workers import PenstockWorkers

Settings = dict[str, str | int | float | bool]
PARTITIONS = 4
QUIET: Settings = {"log_level": 0, "socket.timeout.ms": 5000}


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockWorkers]:
    quick = ("--set", "group.initial.rebalance.delay.ms=0")
    with PenstockWorkers(2, *quick, folder=tmp_path_factory.mktemp("workers")) as broker:
        yield broker


@pytest.fixture
def client(workers: PenstockWorkers) -> Settings:
    return {"bootstrap.servers": workers.bootstrap, **QUIET}


@pytest.fixture
def admin(client: Settings) -> AdminClient:
    return AdminClient(client)


def created(admin: AdminClient, name: str) -> str:
    """Creates a topic of which both workers lead partitions."""
    admin.create_topics([NewTopic(name, PARTITIONS)])[name].result(20)

    def leaders() -> set[int]:
        found = admin.list_topics(timeout=10).topics.get(name)
        return {each.leader for each in found.partitions.values()} if found else set()

    wait_until(lambda: len(leaders()) == 2, 10, "leaders on both workers")
    return name


def produced(client: Settings, topic: str, values: list[bytes]) -> None:
    producer = Producer({**client, "acks": "all", "enable.idempotence": True})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(20) == 0


def read(consumer: Consumer, count: int, seconds: float = 20) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        found += [each.value() or b"" for each in consumer.consume(count, 0.2) if not each.error()]
    return found


def test_records_are_read_as_they_were_written(client: Settings, admin: AdminClient) -> None:
    topic = created(admin, "records")
    values = [b"%d" % number for number in range(200)]
    produced(client, topic, values)
    consumer = Consumer({**client, "group.id": "none"})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    assert sorted(read(consumer, len(values))) == sorted(values)
    consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_shares_the_partitions_of_both_workers(
    client: Settings, admin: AdminClient, protocol: str
) -> None:
    topic, group = created(admin, f"shared-{protocol}"), f"group-{protocol}"
    settings = {**client, "group.id": group, "auto.offset.reset": "earliest"}
    members = [Consumer({**settings, "group.protocol": protocol}) for _ in range(2)]
    for member in members:
        member.subscribe([topic])

    def is_shared() -> bool:
        for member in members:
            member.poll(0.05)
        return [len(member.assignment()) for member in members] == [PARTITIONS // 2] * 2

    wait_until(is_shared, 20, "two partitions for each member")
    produced(client, topic, [b"%d" % number for number in range(40)])
    found = [value for member in members for value in read(member, 20)]
    assert sorted(found) == sorted(b"%d" % number for number in range(40))
    for member in members:
        member.commit(asynchronous=False)
        member.close()
    wanted = [ConsumerGroupTopicPartitions(group)]
    (offsets,) = admin.list_consumer_group_offsets(wanted).values()
    assert [each.offset for each in offsets.result(10).topic_partitions or []] == [10] * PARTITIONS


def test_a_transaction_spans_both_workers(client: Settings, admin: AdminClient) -> None:
    topic = created(admin, "transactions")
    settings = {**client, "group.id": "readers", "isolation.level": "read_committed"}
    reader = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    reader.subscribe([topic])
    producer = Producer({**client, "transactional.id": "spanning"})
    producer.init_transactions(20)
    for number, keeps in enumerate((False, True)):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(topic, b"%d-%d" % (number, partition), partition=partition)
        if not keeps:
            producer.flush(20)
            producer.abort_transaction(20)
            continue
        wait_until(lambda: reader.poll(0.1) is None and bool(reader.assignment()), 20, "the reader")
        offsets = [TopicPartition(topic, index, 1) for index in range(PARTITIONS)]
        producer.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), 20)
        producer.commit_transaction(20)
    found = read(reader, PARTITIONS)
    assert sorted(found) == [b"1-%d" % partition for partition in range(PARTITIONS)]
    partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    assert [each.offset for each in reader.committed(partitions, timeout=10)] == [1] * PARTITIONS
    reader.close()


def test_administrators_reach_the_partitions_of_both_workers(
    client: Settings, admin: AdminClient
) -> None:
    topic = created(admin, "administered")
    produced(client, topic, [b"v"] * PARTITIONS)
    entry = ConfigEntry("retention.ms", "7000", incremental_operation=AlterConfigOpType.SET)
    wanted = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for altered in admin.incremental_alter_configs([wanted]).values():
        altered.result(10)

    def retention() -> str | None:
        (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        value: str | None = described.result(10)["retention.ms"].value
        return value

    wait_until(lambda: retention() == "7000", 10, "the setting")
    admin.create_partitions([NewPartitions(topic, PARTITIONS + 2)])[topic].result(10)
    ends = [TopicPartition(topic, index, 1) for index in range(PARTITIONS)]
    for deleted in admin.delete_records(ends).values():
        assert deleted.result(10).low_watermark == 1
    described = admin.describe_cluster().result(10)
    assert len(described.nodes) == 2
    admin.delete_topics([topic])[topic].result(10)
    wait_until(lambda: topic not in admin.list_topics(timeout=10).topics, 10, "the deletion")
