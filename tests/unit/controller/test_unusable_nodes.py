"""Nodes that tools and operators left unusable or foreign do not stop a controller."""

import asyncio

import pytest

from penstock.controller import controller
from penstock.controller.leader_election import EligibleLeadersNotAvailable
from penstock.controller.topics import PlannedTopic, TopicSpec
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.records import (
    ConfigOverrides,
    PartitionState,
    TopicAssignment,
    decode,
    encode,
)
from penstock.metadata.tree import Tree
from penstock.testing.controllers import RunningController, running_controller
from penstock.types import NO_UUID, BrokerId, Uuid
from penstock.wire.enums import ElectionType
from support.brokers.controlled_topic import FIRST, state, wanted
from support.brokers.resigning_controller import is_led_by, until, with_topic

STATE = paths.partition_state(FIRST)


@pytest.mark.parametrize(
    "parent",
    [
        paths.topic("t"),
        paths.partitions("t"),
        paths.partition(FIRST),
        paths.partition_state(FIRST),
        paths.topic_config("t"),
    ],
)
def test_a_foreign_node_under_a_deleted_topic_does_not_block_its_name(
    tree: Tree, parent: str
) -> None:
    async def work(running: RunningController) -> None:
        await running.store.create(f"{parent}/odd")
        await running.store.create(f"{parent}/odd/child")
        await running.controller.delete_topics(["t"])
        await running.settled()
        assert not await running.store.exists(paths.topic("t"))
        (made,) = await running.controller.create_topics([TopicSpec("t")])
        assert isinstance(made, PlannedTopic), made
        assert state(running).leader >= 0

    with_topic(tree, work)


MALFORMED = (
    paths.topic("foo"),
    paths.broker(BrokerId(9)),
    f"{paths.BROKER_IDS}/nine",
    paths.topic_config("foo"),
    f"{paths.CONFIG_BROKERS}/nine",
    f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_0000000001",
    paths.REASSIGN_PARTITIONS,
    paths.PREFERRED_REPLICA_ELECTION,
)


@pytest.mark.parametrize("path", MALFORMED)
@pytest.mark.parametrize("data", [None, b"no JSON"])
def test_one_malformed_node_stops_nothing(tree: Tree, path: str, data: bytes | None) -> None:
    async def make() -> None:
        async with running_controller(tree, brokers=(0, 1)) as running:
            await running.controller.create_topics([TopicSpec("t", assignments=((0, (1, 0)),))])
            await running.store.create(path, data)
            await running.settled()
            assert running.controller.is_active
            await running.store.delete(paths.broker(BrokerId(1)))
            await running.settled()
            assert state(running).leader == 0

    async def take_over() -> None:
        async with running_controller(tree, brokers=(0, 1)) as running:
            assert isinstance(
                (await running.controller.create_topics([TopicSpec("u")]))[0], PlannedTopic
            )

    asyncio.run(make())
    asyncio.run(take_over())


def test_an_unclean_election_does_not_replace_a_state_that_cannot_be_read(tree: Tree) -> None:
    """The leader epoch would go back to the first one: brokers ignore it, and two may lead in it
    later.
    """

    async def make() -> None:
        async with running_controller(tree, brokers=(0, 1)) as running:
            await running.controller.create_topics([TopicSpec("t", assignments=((0, (1, 0)),))])
            await running.store.set(STATE, b"no JSON")

    async def take_over() -> None:
        async with running_controller(tree, brokers=(0, 1)) as running:
            await running.settled()
            answers = await running.controller.elect_leaders(ElectionType.UNCLEAN, [FIRST])
            assert isinstance(answers[FIRST], EligibleLeadersNotAvailable)
            assert (await running.store.get(STATE)).data == b"no JSON"

    asyncio.run(make())
    asyncio.run(take_over())


def test_a_corrected_state_is_read_without_another_event(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "REPAIR_AGAIN_S", 0.01)

    async def make() -> bytes:
        async with running_controller(tree, brokers=(0, 1)) as running:
            await running.controller.create_topics([TopicSpec("t", assignments=((0, (1, 0)),))])
            before = (await running.store.get(STATE)).data
            await running.store.set(STATE, b"no JSON")
            assert before is not None
            return before

    async def take_over(before: bytes) -> None:
        async with running_controller(tree, brokers=(0, 1)) as running:
            await running.settled()
            assert state(running).leader == -1
            await running.store.set(STATE, before)
            await until(lambda: is_led_by(running, 1))
            assert state(running).leader_epoch == 1

    asyncio.run(take_over(asyncio.run(make())))


@pytest.mark.parametrize("data", [b"", b"no JSON"])
def test_a_controller_writes_a_state_again_that_was_made_unreadable(
    tree: Tree, data: bytes
) -> None:
    async def work(running: RunningController) -> None:
        change = wanted(state(running), (1, 2))
        await running.controller.alter_isrs(BrokerId(1), -1, [change])
        await running.store.set(STATE, data)
        await running.store.delete(paths.broker(BrokerId(1)))
        await until(lambda: is_led_by(running, 2))
        stored = decode(PartitionState, await running.store.get(STATE))
        assert (stored.leader, stored.isr, stored.leader_epoch) == (2, (2,), 1)

    with_topic(tree, work)


def test_a_state_of_an_older_leader_epoch_does_not_replace_the_one_decided_since(
    tree: Tree,
) -> None:
    """An operator copies a node back from before an election. Brokers would ignore all leaders of
    the epochs that they know, and the ISR of the time may lack records.
    """

    async def work(running: RunningController) -> None:
        older = (await running.store.get(STATE)).data
        await running.store.delete(paths.broker(BrokerId(1)))
        await until(lambda: is_led_by(running, 2))
        change = wanted(state(running), (2,))
        await running.controller.alter_isrs(BrokerId(2), -1, [change])
        await running.store.set(STATE, older)
        outcomes = await running.controller.alter_isrs(
            BrokerId(2), -1, [wanted(state(running), (2, 0))]
        )
        assert isinstance(outcomes[FIRST], KafkaError)
        await running.settled()
        stored = decode(PartitionState, await running.store.get(STATE))
        assert (stored.leader, stored.isr, stored.leader_epoch) == (2, (2,), 2)
        assert (state(running).leader, state(running).leader_epoch) == (2, 2)

    with_topic(tree, work)


def test_no_advice_is_to_delete_the_state_of_a_partition(
    tree: Tree, caplog: pytest.LogCaptureFixture
) -> None:
    """The partition would begin anew, led by any replica, and the others would truncate."""

    async def work(running: RunningController) -> None:
        await running.store.set(STATE, b"no JSON")
        await running.store.delete(paths.broker(BrokerId(1)))
        await until(lambda: is_led_by(running, 2))

    with_topic(tree, work)
    (line,) = [each for each in caplog.messages if "the node is skipped" in each]
    assert "correct it, and do not delete it" in line


@pytest.mark.parametrize("name", ["f" * 250, "two words", "ü"])
def test_a_topic_that_a_tool_gave_an_impossible_name_is_skipped(tree: Tree, name: str) -> None:
    """No broker could create its log; the attempt would take a log directory offline."""

    async def run() -> None:
        async with running_controller(tree) as running:
            assignment = TopicAssignment(partitions={0: (BrokerId(0),)})
            await running.store.create(paths.topic(name), encode(assignment))
            await running.settled()
            assert running.controller.image.topics == {}
            await running.store.create(paths.deleted_topic(name))
            await running.settled()
            assert not await running.store.exists(paths.topic(name))

    asyncio.run(run())


@pytest.mark.parametrize("is_active", [True, False])
def test_a_topic_written_without_an_id_gets_one(tree: Tree, is_active: bool) -> None:
    """Written by a tool or an older Kafka. Followers fetch by id; leaders alter the ISR by it."""
    assignment = encode(TopicAssignment(partitions={0: (BrokerId(0), BrokerId(1))}))

    async def run(*, writes: bool) -> Uuid:
        async with running_controller(tree, brokers=(0, 1)) as running:
            if writes:
                await running.store.create(paths.topic("t"), assignment)
            if writes and not is_active:
                return NO_UUID
            await running.settled()
            topic = running.controller.image.topics["t"]
            assert topic.partitions[0].leader == 0
            assert running.controller.image.topic_names == {topic.id: "t"}
            assert (
                decode(TopicAssignment, await running.store.get(paths.topic("t"))).id() == topic.id
            )
            assert {each.topic_id for each in running.last_change.partitions} <= {topic.id}
            return topic.id

    first = asyncio.run(run(writes=True))
    second = asyncio.run(run(writes=False))
    assert second != NO_UUID
    assert first in {second, NO_UUID}


UNUSABLE = {
    paths.topic_config("t"): ("retention.ms", "no.such.setting"),
    paths.broker_config(None): ("log.retention.ms", "log.cleaner.min.compaction.lag.ms"),
    paths.broker_config(BrokerId(0)): ("log.retention.ms",),
}


@pytest.mark.parametrize(
    ("path", "name"), [(path, name) for path, names in UNUSABLE.items() for name in names]
)
def test_an_unusable_setting_in_the_store_stops_nothing(tree: Tree, path: str, name: str) -> None:
    """A partition without a leader asks whether its topic allows an unclean election."""
    overrides = encode(ConfigOverrides(config={name: "many"}))

    async def make() -> None:
        async with running_controller(tree, brokers=(0, 1)) as running:
            await running.controller.create_topics([TopicSpec("t", assignments=((0, (1,)),))])
            if await running.store.exists(path):
                await running.store.set(path, overrides)
            else:
                await running.store.create(path, overrides)
            running.controller.check_for_changes()
            await running.store.delete(paths.broker(BrokerId(1)))
            await running.settled()
            assert running.controller.is_active
            assert state(running).leader == -1

    async def take_over() -> None:
        async with running_controller(tree, brokers=(0, 2)) as running:
            created = await running.controller.create_topics([TopicSpec("u")])
            assert isinstance(created[0], PlannedTopic)

    asyncio.run(make())
    asyncio.run(take_over())
