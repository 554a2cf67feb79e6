"""Administration of the real Kafka by our client, and how it finds its brokers."""

import asyncio
from uuid import uuid4

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as RdTopicPartition

from peers.kafka import KafkaCluster
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
    ConfigSource,
    Resource,
    alter_configs,
    describe_configs,
)
from penstock.client.consume import SimpleConsumer
from penstock.client.errors import BrokerRefused, check
from penstock.client.groups import (
    GroupListing,
    alter_committed,
    committed_offsets,
    delete_group,
    list_groups,
)
from penstock.client.listing import EARLIEST, LATEST, MAX_TIMESTAMP
from penstock.client.offsets import delete_records, list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.client.route import ToCoordinator, ToLeader
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ErrorCode
from penstock.types import BrokerId, Offset, TopicPartition
from penstock.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from support.commands.client_runs import eventually, has_partitions, refusal, run

pytestmark = pytest.mark.peer
START = Offset(0)


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
        configs = await describe_configs(client, Resource(ConfigResourceType.TOPIC, name))
        return configs["retention.ms"].value

    assert run(kafka, scenario) == "1000"


def test_errors_carry_the_brokers_code_and_message(kafka: KafkaCluster, topic: str) -> None:
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


def test_a_validated_topic_is_not_created(kafka: KafkaCluster) -> None:
    async def scenario(client: Client) -> list[str]:
        await create_topic(client, NewTopic(name="only-validated"), validate_only=True)
        return [each.name for each in await list_topics(client)]

    assert "only-validated" not in run(kafka, scenario)


def test_a_setting_is_altered_and_deleted(kafka: KafkaCluster, topic: str) -> None:
    resource = Resource(ConfigResourceType.TOPIC, topic)

    async def scenario(client: Client) -> None:
        async def is_set(value: str, source: ConfigSource) -> bool:
            found = await describe_configs(client, resource, names=["segment.bytes"])
            entry = found["segment.bytes"]
            assert entry.synonyms[-1].source is ConfigSource.DEFAULT_CONFIG
            return (entry.value, entry.source) == (value, source)

        await alter_configs(client, resource, {"segment.bytes": "1048576"})
        await eventually(lambda: is_set("1048576", ConfigSource.DYNAMIC_TOPIC_CONFIG))
        await alter_configs(client, resource, {"segment.bytes": None})
        await eventually(lambda: is_set("1073741824", ConfigSource.DEFAULT_CONFIG))
        broker = await describe_configs(
            client, Resource(ConfigResourceType.BROKER, "0"), documentation=True
        )
        assert broker["log.dirs"].source is ConfigSource.STATIC_BROKER_CONFIG
        assert broker["log.dirs"].is_read_only
        assert broker["log.dirs"].documentation

    run(kafka, scenario)
    wrong = refusal(kafka, lambda client: alter_configs(client, resource, {"segment.bytes": "x"}))
    assert wrong.code is ErrorCode.INVALID_CONFIG


def test_offsets_are_found_by_position_and_by_timestamp(kafka: KafkaCluster, topic: str) -> None:
    place = TopicPartition(topic, 0)

    async def scenario(client: Client) -> None:
        times = [10_000, 30_000, 20_000]
        records = [ProducerRecord(topic, b"", partition=0, timestamp=time) for time in times]
        await IdempotentProducer(client, batch_bytes=1).send(records)

        async def offset(at: int) -> int:
            return (await list_offsets(client, {place: at}))[place].offset

        assert [await offset(at) for at in (EARLIEST, LATEST, MAX_TIMESTAMP)] == [0, 3, 1]
        assert [await offset(at) for at in (9_000, 15_000, 30_000, 31_000)] == [0, 1, 1, -1]
        assert await delete_records(client, {place: Offset(2)}) == {place: 2}
        assert await offset(EARLIEST) == 2
        with pytest.raises(BrokerRefused) as caught:
            await SimpleConsumer(client, {place: START}).poll()
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    run(kafka, scenario)


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


def test_offsets_committed_for_a_group_are_those_that_librdkafka_sees(
    kafka: KafkaCluster, topic: str
) -> None:
    group = f"{topic}-group"
    places = [TopicPartition(topic, 0), TopicPartition(topic, 2)]
    offsets = {places[0]: Offset(7), places[1]: Offset(9)}

    async def commit(client: Client) -> None:
        await alter_committed(client, group, offsets)
        committed = await committed_offsets(client, group)
        assert {place: each.offset for place, each in committed.items()} == offsets

    run(kafka, commit)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    try:
        seen = consumer.committed([RdTopicPartition(*place) for place in places], 20)
    finally:
        consumer.close()
    assert [each.offset for each in seen] == [7, 9]

    async def delete(client: Client) -> tuple[list[GroupListing], list[GroupListing]]:
        before = await list_groups(client)
        await delete_group(client, group)
        return before, await list_groups(client)

    before, after = run(kafka, delete)
    assert GroupListing(group, "", "Empty", "classic") in before
    assert group not in [each.id for each in after]
    missing = refusal(kafka, lambda client: delete_group(client, group))
    assert missing.code is ErrorCode.GROUP_ID_NOT_FOUND


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
