"""The controller's work on topics (create, grow, delete, register) and its own failover."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import pytest

from penstock.controller.broker_registration import InconsistentClusterId, cluster_id, new_broker_id
from penstock.controller.epoch import ControllerEpoch, NotController
from penstock.controller.found_topics import FoundTopic
from penstock.controller.topic_rules import PolicyViolation, TopicDeletionDisabled
from penstock.controller.topics import MorePartitions, PlannedTopic, TopicSpec
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.errors import NoNode
from penstock.metadata.records import PartitionState, TopicAssignment, decode, encode
from penstock.metadata.tree import Tree
from penstock.testing.controllers import RunningController, running_controller
from penstock.types import BrokerId, TopicPartition, Uuid, uuid_text

T = TypeVar("T")


def with_controller(
    tree: Tree,
    work: Callable[[RunningController], Awaitable[T]],
    *,
    brokers: Mapping[int, str | None] | Sequence[int] = (0,),
    settings: Mapping[str, str] | None = None,
) -> T:
    async def run() -> T:
        async with running_controller(tree, brokers=brokers, settings=settings) as running:
            return await work(running)

    return asyncio.run(run())


async def created(running: RunningController, *news: TopicSpec) -> list[PlannedTopic]:
    made = []
    for outcome in await running.controller.create_topics(news):
        assert isinstance(outcome, PlannedTopic), outcome
        made.append(outcome)
    return made


@pytest.mark.row("A087")
def test_a_topic_is_in_the_store_as_kafka_would_have_written_it(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        new = TopicSpec("t", 2, 2, configs={"retention.ms": "1000"})
        (made,) = await created(running, new)
        assignment = decode(TopicAssignment, await running.store.get("/brokers/topics/t"))
        assert assignment.id() == made.topic.id
        assert list(assignment.partitions) == [0, 1]
        state = decode(
            PartitionState, await running.store.get("/brokers/topics/t/partitions/1/state")
        )
        assert (state.leader, state.leader_epoch) == (assignment.partitions[1][0], 0)
        assert set(state.isr) == set(assignment.partitions[1])
        config = await running.store.get("/config/topics/t")
        assert config.data == b'{"version":1,"config":{"retention.ms":"1000"}}'

    with_controller(tree, work, brokers=(0, 1, 2))


def test_brokers_receive_a_new_topic_with_its_leaders(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        (made,) = await created(running, TopicSpec("t", 2, 1))
        change = running.last_change
        assert [each.topic_partition for each in change.partitions] == [("t", 0), ("t", 1)]
        assert all(each.is_new and each.state.leader == 0 for each in change.partitions)
        assert change.image.topics["t"].partitions[0].isr == (0,)
        assert change.image.topic_by_id(made.topic.id) is change.image.topics["t"]
        assert change.topic_configs == ("t",)

    with_controller(tree, work)


def test_each_topic_of_a_request_succeeds_or_fails_on_its_own(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        outcomes = await running.controller.create_topics(
            [
                TopicSpec("good"),
                TopicSpec("bad name"),
                TopicSpec("good"),
                TopicSpec("none", 0),
                TopicSpec("three", 1, 3),
                TopicSpec("odd", configs={"retention.ms": "soon"}),
                TopicSpec("unknown", configs={"colour": "blue"}),
                TopicSpec("empty", configs={"retention.ms": None}),
                TopicSpec("both", 1, -1, assignments=((0, (0,)),)),
                TopicSpec("chosen", assignments=((0, (0,)), (1, (0,)))),
            ]
        )
        codes = [each.code if isinstance(each, KafkaError) else 0 for each in outcomes]
        assert codes == [
            ErrorCode.NONE,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.INVALID_PARTITIONS,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            ErrorCode.INVALID_CONFIG,
            ErrorCode.INVALID_CONFIG,
            ErrorCode.INVALID_CONFIG,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.NONE,
        ]
        assert sorted(running.controller.image.topics) == ["chosen", "good"]

    with_controller(tree, work)


def test_validation_alone_leaves_no_trace(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        before = len(running.brokers.changes)
        (plan,) = await running.controller.create_topics([TopicSpec("t", 3)], validate_only=True)
        assert isinstance(plan, PlannedTopic)
        assert len(plan.topic.partitions) == 3
        assert not await running.store.exists("/brokers/topics/t")
        assert len(running.brokers.changes) == before

    with_controller(tree, work)


def test_a_topic_gets_the_brokers_defaults(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        (made,) = await created(running, TopicSpec("t"))
        assert len(made.topic.partitions) == 4
        assert all(len(each.replicas) == 2 for each in made.topic.partitions.values())

    settings = {"num.partitions": "4", "default.replication.factor": "2"}
    with_controller(tree, work, brokers=(0, 1, 2), settings=settings)


def test_a_request_for_too_many_partitions_is_refused(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        with pytest.raises(PolicyViolation):
            await running.controller.create_topics([TopicSpec("a", 6000), TopicSpec("b", 4001)])

    with_controller(tree, work)


def test_a_topic_survives_the_controller(tree: Tree) -> None:
    async def first(running: RunningController) -> Uuid:
        (made,) = await created(running, TopicSpec("t", 2, configs={"segment.ms": "5000"}))
        return made.topic.id

    async def second(running: RunningController) -> None:
        image = running.controller.image
        assert image.topics["t"].id == topic_id
        assert image.topic_configs["t"] == {"segment.ms": "5000"}
        assert image.controller_epoch == 2
        (start,) = running.brokers.changes
        assert [each.topic_partition for each in start.partitions] == [("t", 0), ("t", 1)]
        assert not any(each.is_new for each in start.partitions)
        # The leader is alive again, so no new leader epoch began.
        assert {each.state.leader_epoch for each in start.partitions} == {0}

    topic_id = with_controller(tree, first)
    with_controller(tree, second)


def test_a_deleted_topic_leaves_nothing_behind(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        (made,) = await created(running, TopicSpec("t", 2))
        outcomes = await running.controller.delete_topics(["t", "unknown"])
        assert outcomes["t"] == running.brokers.changes[1].image.topics["t"]
        assert isinstance(outcomes["unknown"], KafkaError)
        stop = next(each for each in running.brokers.changes if each.stopped)
        assert [(each.topic_partition, each.topic_id) for each in stop.stopped] == [
            (("t", 0), made.topic.id),
            (("t", 1), made.topic.id),
        ]
        assert "t" not in stop.image.topics
        for path in ("/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t"):
            assert not await running.store.exists(path)
        (again,) = await created(running, TopicSpec("t"))
        assert again.topic.id != made.topic.id

    with_controller(tree, work)


def test_topics_stay_where_deletion_is_disabled(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await created(running, TopicSpec("t"))
        with pytest.raises(TopicDeletionDisabled):
            await running.controller.delete_topics(["t"])
        await running.store.create("/admin/delete_topics/t")  # as Kafka's old tools do
        await running.settled()
        assert "t" in running.controller.image.topics
        assert not await running.store.exists("/admin/delete_topics/t")
        running.controller.resign()
        await running.store.create("/admin/delete_topics/t")
        await running.store.delete("/controller")
        await running.controller.start()
        assert "t" in running.controller.image.topics
        assert not await running.store.exists("/admin/delete_topics/t")

    with_controller(tree, work, settings={"delete.topic.enable": "false"})


def test_a_deletion_waits_for_replicas_on_dead_brokers(tree: Tree) -> None:
    async def first(running: RunningController) -> None:
        await created(running, TopicSpec("t", 1, 2))

    async def while_one_is_down(running: RunningController) -> None:
        await running.controller.delete_topics(["t"])
        assert await running.store.exists("/brokers/topics/t")
        assert running.controller.image.deleting == {"t"}
        (refused,) = await running.controller.create_topics([TopicSpec("t")])
        assert isinstance(refused, KafkaError)
        assert refused.code == ErrorCode.TOPIC_ALREADY_EXISTS

    async def when_it_is_back(running: RunningController) -> None:
        await running.settled()
        assert not await running.store.exists("/brokers/topics/t")
        assert not await running.store.exists("/admin/delete_topics/t")
        assert running.controller.image.deleting == frozenset()

    with_controller(tree, first, brokers=(0, 1))
    with_controller(tree, while_one_is_down)
    with_controller(tree, when_it_is_back, brokers=(0, 1))


def test_a_deletion_waits_for_the_controllers_own_failed_directory(tree: Tree) -> None:
    async def while_it_has_failed(running: RunningController) -> None:
        await created(running, TopicSpec("t", 2))
        running.brokers.failed = {TopicPartition("t", 1)}
        await running.controller.delete_topics(["t"])
        await running.settled()
        assert await running.store.exists("/admin/delete_topics/t")
        (refused,) = await running.controller.create_topics([TopicSpec("t")])
        assert isinstance(refused, KafkaError)

    async def when_it_is_mended(running: RunningController) -> None:
        await running.settled()
        assert not await running.store.exists("/admin/delete_topics/t")

    with_controller(tree, while_it_has_failed)
    with_controller(tree, when_it_is_mended)


def test_a_new_controller_brings_a_half_created_topic_online(tree: Tree) -> None:
    async def torn(running: RunningController) -> None:
        assignment = TopicAssignment.of(Uuid(b"t" * 16), {0: (BrokerId(0),), 1: (BrokerId(0),)})
        await running.store.create("/brokers/topics/t", encode(assignment))
        await running.store.create("/brokers/topics/t/partitions")

    async def healed(running: RunningController) -> None:
        assert [each.is_new for each in running.last_change.partitions] == [True, True]
        assert running.controller.image.topics["t"].partitions[1].leader == 0

    with_controller(tree, torn)
    with_controller(tree, healed)


def test_a_new_controller_replaces_leaders_that_died_meanwhile(tree: Tree) -> None:
    async def first(running: RunningController) -> None:
        await created(running, TopicSpec("t", assignments=((0, (1, 0)), (1, (0, 1)), (2, (1, 2)))))

    async def second(running: RunningController) -> None:
        zero, one, two = (
            running.controller.image.topics["t"].partitions[index] for index in range(3)
        )
        assert (zero.leader, zero.isr, zero.leader_epoch, zero.partition_epoch) == (0, (0,), 1, 1)
        assert (one.leader, one.isr, one.leader_epoch) == (0, (0,), 1)
        # No member of its ISR is alive, so it waits for one.
        assert (two.leader, two.isr) == (-1, (1, 2))

    with_controller(tree, first, brokers=(0, 1, 2))
    with_controller(tree, second)


def test_new_partitions_continue_the_topics_placement(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await created(running, TopicSpec("t", 2, 2))
        await running.controller.create_partitions(MorePartitions("t", 5))
        topic = running.controller.image.topics["t"]
        leaders = [topic.partitions[index].replicas[0] for index in range(5)]
        assert leaders == [(leaders[0] + index) % 3 for index in range(5)]
        assert [each.topic_partition.partition for each in running.last_change.partitions] == [
            2,
            3,
            4,
        ]
        stored = decode(TopicAssignment, await running.store.get("/brokers/topics/t"))
        assert len(stored.partitions) == 5

    with_controller(tree, work, brokers=(0, 1, 2))


@pytest.mark.parametrize(
    ("partitions", "reported"),
    [("{}", "has no partition"), ('{"1": [0]}', None)],
)
def test_a_topic_that_was_written_by_hand_may_lack_its_first_partition(
    tree: Tree, partitions: str, reported: str | None
) -> None:
    async def work(running: RunningController) -> None:
        node = f'{{"version": 3, "topic_id": "{uuid_text(Uuid(b"i" * 16))}", "partitions": PARTS}}'
        await running.store.create(paths.topic("t"), node.replace("PARTS", partitions).encode())
        await running.settled()
        if reported is None:
            grown = await running.controller.create_partitions(MorePartitions("t", 3))
            assert set(grown.partitions) == {1, 2}
        else:
            with pytest.raises(KafkaError, match=reported) as refusal:
                await running.controller.create_partitions(MorePartitions("t", 3))
            assert refusal.value.code == ErrorCode.INVALID_PARTITIONS
        await running.controller.delete_topics(["t"])
        await created(running, TopicSpec("t", 2))

    with_controller(tree, work)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (MorePartitions("t", 2), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("u", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (MorePartitions("t", 3, ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("t", 3, ((7,),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("t", 20_000), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_invalid_growth_is_refused(tree: Tree, more: MorePartitions, code: int) -> None:
    async def work(running: RunningController) -> None:
        await created(running, TopicSpec("t", 2))
        with pytest.raises(KafkaError) as refusal:
            await running.controller.create_partitions(more)
        assert refusal.value.code == code

    with_controller(tree, work)


@pytest.mark.row("A089")
def test_a_controller_that_was_succeeded_writes_nothing(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await running.store.delete(paths.CONTROLLER)
        await ControllerEpoch.win(running.store, BrokerId(1), now_ms=0)
        with pytest.raises(NotController):
            await running.controller.create_topics([TopicSpec("t")])
        with pytest.raises(NoNode):
            await running.store.get("/config/topics/t")

    with_controller(tree, work)


@pytest.mark.row("A088")
def test_there_is_one_controller(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        with pytest.raises(NotController):
            await ControllerEpoch.win(running.store, BrokerId(1), now_ms=0)

    with_controller(tree, work)


def test_producer_ids_are_allocated_once(tree: Tree) -> None:
    async def two(running: RunningController) -> list[tuple[int, int]]:
        return [await running.controller.next_producer_id_block() for _ in range(2)]

    assert with_controller(tree, two) == [(0, 1000), (1000, 2000)]
    assert with_controller(tree, two) == [(2000, 3000), (3000, 4000)]


def test_the_cluster_keeps_its_id(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        known = running.controller.image.cluster_id
        assert known is not None
        assert len(known) == 22
        assert await cluster_id(running.store, known, Uuid(bytes(16))) == known
        with pytest.raises(InconsistentClusterId):
            await cluster_id(running.store, "another", Uuid(bytes(16)))

    with_controller(tree, work)


def test_broker_ids_are_allocated_above_the_reserved_ones(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        assert [await new_broker_id(running.store, 1000) for _ in range(2)] == [1001, 1002]

    with_controller(tree, work)


def test_found_topics_keep_their_ids_and_begin_new_epochs(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        found = FoundTopic("t", Uuid(b"i" * 16), {0: 4, 1: -1})
        (outcome,) = await running.controller.register_found([found])
        assert isinstance(outcome, PlannedTopic)
        partitions = running.controller.image.topics["t"].partitions
        assert [each.leader_epoch for each in partitions.values()] == [5, 0]
        assert running.controller.image.topics["t"].id == b"i" * 16
        assert not any(each.is_new for each in running.last_change.partitions)
        (again,) = await running.controller.register_found([found])
        assert isinstance(again, KafkaError)

    with_controller(tree, work)


def test_concurrent_operations_are_carried_out_one_by_one(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        async with asyncio.TaskGroup() as tasks:
            same = [
                tasks.create_task(running.controller.create_topics([TopicSpec("t", 3)]))
                for _ in range(4)
            ]
        outcomes = [task.result()[0] for task in same]
        assert sum(isinstance(each, PlannedTopic) for each in outcomes) == 1

    with_controller(tree, work)
