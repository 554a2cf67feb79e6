"""The cluster image, and the deltas that make the next one."""

import asyncio

from penstock.clock import SystemClock
from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.image import Broker, ClusterImage, ImageDelta, PartitionRegistration, Topic
from penstock.metadata.reader import read_group_config, read_image
from penstock.metadata.records import (
    NO_LEADER,
    ClusterId,
    ConfigOverrides,
    ElectedController,
    PartitionState,
    TopicAssignment,
    encode,
)
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import Create, MetadataStore, Set
from penstock.metadata.tree import Tree
from penstock.types import NO_UUID, BrokerId, LeaderEpoch, TopicPartition, Uuid

B0, B1 = BrokerId(0), BrokerId(1)
ADDRESS = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", 9092)
FIRST, SECOND = Uuid(bytes(15) + b"1"), Uuid(bytes(15) + b"2")


def topic(name: str, topic_id: Uuid = FIRST, partitions: int = 1) -> Topic:
    return Topic(
        name, topic_id, {index: PartitionRegistration((B0,)) for index in range(partitions)}
    )


def image(*topics: Topic) -> ClusterImage:
    return ClusterImage().apply(ImageDelta(topics={each.name: each for each in topics}))


def test_a_delta_changes_what_it_names_and_shares_the_rest() -> None:
    before = image(topic("a"), topic("b", SECOND)).apply(
        ImageDelta(brokers={B0: Broker(B0, 5, (ADDRESS,))})
    )
    led = PartitionRegistration((B0,), isr=(B0,), leader=B0, leader_epoch=LeaderEpoch(1))
    after = before.apply(ImageDelta(partitions={TopicPartition("a", 0): led}))
    assert after.partition(TopicPartition("a", 0)) is led
    assert before.partition(TopicPartition("a", 0)) == PartitionRegistration((B0,))
    assert after.topics["a"] is not before.topics["a"]
    assert after.topics["b"] is before.topics["b"]
    assert after.brokers is before.brokers
    assert after.topic_names is before.topic_names


def test_an_empty_delta_shares_everything() -> None:
    before = image(topic("a"))
    assert before.apply(ImageDelta()) == before
    assert before.apply(ImageDelta()).topics is before.topics


def test_a_topic_created_again_is_known_only_by_its_new_id() -> None:
    before = image(topic("a"))
    after = before.apply(ImageDelta(topics={"a": topic("a", SECOND)}))
    assert after.topic_by_id(FIRST) is None
    assert after.topic_by_id(SECOND) is after.topics["a"]
    gone = after.apply(ImageDelta(topics={"a": None}))
    assert (gone.topics, gone.topic_names) == ({}, {})


def test_topics_without_ids_are_known_by_name_only() -> None:
    assert image(topic("old", NO_UUID)).topic_names == {}
    assert image(topic("old", NO_UUID)).topic_by_id(NO_UUID) is None


def test_changes_of_a_deleted_topic_are_ignored() -> None:
    news = {TopicPartition("gone", 0): PartitionRegistration((B0,))}
    assert image().apply(ImageDelta(partitions=news)).topics == {}
    assert image(topic("a")).partition(TopicPartition("a", 9)) is None


def test_a_delta_adds_and_removes_partitions_of_its_own_topics() -> None:
    new = image().apply(
        ImageDelta(
            topics={"a": topic("a", partitions=2)},
            partitions={
                TopicPartition("a", 1): None,
                TopicPartition("a", 2): PartitionRegistration((B1,)),
            },
        )
    )
    assert list(new.topics["a"].partitions) == [0, 2]


def test_a_delta_adds_and_removes_brokers_configs_and_the_controller() -> None:
    full = ClusterImage().apply(
        ImageDelta(
            brokers={B0: Broker(B0, 5, (ADDRESS,), "r1"), B1: Broker(B1, 6, ())},
            topic_configs={"a": {"retention.ms": "1"}},
            broker_configs={B0: {"log.cleaner.threads": "2"}},
            default_broker_config={"num.io.threads": "3"},
            deleting=frozenset({"a"}),
            controller=B1,
            controller_epoch=4,
        )
    )
    assert full.brokers[B0].endpoint("PLAINTEXT") == ADDRESS
    assert full.brokers[B1].endpoint("PLAINTEXT") is None
    bare = full.apply(
        ImageDelta(
            brokers={B1: None},
            topic_configs={"a": None},
            broker_configs={B0: None},
            default_broker_config={},
            deleting=frozenset(),
            controller=NO_LEADER,
        )
    )
    assert bare == ClusterImage(brokers={B0: full.brokers[B0]}, controller_epoch=4)


async def fill(store: MetadataStore) -> None:
    made: dict[str, None] = {}
    for path in (*paths.PERSISTENT, "/cluster"):
        made |= dict.fromkeys(paths.with_parents(path))
    await store.multi([Create(path) for path in made])
    assignment = TopicAssignment(
        partitions={1: (B1, B0), 0: (B0, B1)},
        topic_id=TopicAssignment.of(FIRST, {}).topic_id,
        adding_replicas={1: (B0,)},
        removing_replicas={1: (B1,)},
    )
    where = TopicPartition("t", 0)
    state = PartitionState(
        controller_epoch=2,
        leader=B0,
        leader_epoch=LeaderEpoch(3),
        isr=(B0, B1),
        leader_recovery_state=1,
    )
    default = ConfigOverrides(config={"c": "3"})
    await store.multi(
        [
            Create(paths.CLUSTER_ID, encode(ClusterId(id="abc"))),
            Create(
                paths.CONTROLLER,
                encode(ElectedController(broker=B0, timestamp="1")),
                ephemeral=True,
            ),
            Create(paths.CONTROLLER_EPOCH, encode(2)),
            Create(paths.broker(B0), ephemeral=True),
            Set(paths.broker(B0), encode(BrokerRegistration.of([ADDRESS], 1, "r1"))),
            Create(paths.topic("t"), encode(assignment)),
            Create(paths.partitions("t")),
            Create(paths.partition(where)),
            Create(paths.partition_state(where)),
            Set(paths.partition_state(where), encode(state)),
            Create(paths.topic_config("t"), encode(ConfigOverrides(config={"a": "1"}))),
            Create(paths.broker_config(B0), encode(ConfigOverrides(config={"b": "2"}))),
            Create(paths.broker_config(None), encode(default)),
            Create(paths.deleted_topic("u")),
        ]
    )


def test_the_image_equals_the_contents_of_the_store() -> None:
    async def scenario() -> None:
        tree = Tree.in_memory(SystemClock())
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        assert await read_image(store) == ClusterImage()
        await fill(store)
        epoch = (await store.get(paths.broker(B0))).created_zxid
        partitions = {
            0: PartitionRegistration(
                (B0, B1),
                isr=(B0, B1),
                leader=B0,
                leader_epoch=LeaderEpoch(3),
                partition_epoch=1,
                controller_epoch=2,
                offline_replicas=(B1,),
                recovering=True,
            ),
            1: PartitionRegistration(
                (B1, B0), offline_replicas=(B1,), adding_replicas=(B0,), removing_replicas=(B1,)
            ),
        }
        assert await read_image(store) == ClusterImage(
            cluster_id="abc",
            controller=B0,
            controller_epoch=2,
            brokers={B0: Broker(B0, epoch, (ADDRESS,), "r1")},
            topics={"t": Topic("t", FIRST, partitions)},
            topic_names={FIRST: "t"},
            topic_configs={"t": {"a": "1"}},
            broker_configs={B0: {"b": "2"}},
            default_broker_config={"c": "3"},
            deleting=frozenset({"u"}),
        )
        tree.close()

    asyncio.run(scenario())


def test_a_groups_settings_are_read_from_the_store() -> None:
    async def scenario() -> None:
        tree = Tree.in_memory(SystemClock())
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        await fill(store)
        assert await read_group_config(store, "a/b") == {}
        path = paths.group_config("a/b")
        given = encode(ConfigOverrides(config={"share.auto.offset.reset": "earliest"}))
        await store.multi([Create(paths.CONFIG_GROUPS), Create(path, given)])
        assert await read_group_config(store, "a/b") == {"share.auto.offset.reset": "earliest"}
        assert await read_group_config(store, "other") == {}
        await store.set(path, b"not JSON")
        assert await read_group_config(store, "a/b") == {}
        tree.close()

    asyncio.run(scenario())
