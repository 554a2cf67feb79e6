"""Which replicas the controller trusts after an unclean shutdown: they may lack records."""

import asyncio

import pytest
from msgspec import UNSET

from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.controller.broker_registration import register
from penstock.controller.leader_election import PreferredLeaderNotAvailable
from penstock.controller.repair import repair
from penstock.controller.topics import TopicSpec
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.image import PartitionRegistration
from penstock.metadata.records import (
    PartitionState,
    decode,
    encode,
)
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import Create, Delete
from penstock.metadata.tree import Tree
from penstock.replication.proposal import NOT_DONE, OUTDATED
from penstock.testing.controllers import LossyStore, RunningController, running_controller
from penstock.types import BrokerId, TopicPartition
from penstock.wire.enums import ElectionType
from support.brokers.controlled_topic import FIRST, SECOND, come, die, state, wanted, with_topic


def test_a_broker_after_an_unclean_shutdown_waits_for_other_in_sync_replicas(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await die(running, 1, 2)
        assert state(running).isr == (1, 2)
        await come(running, 1, unclean_shutdown=True)
        assert state(running).leader == -1
        await come(running, 2)
        assert state(running).leader == 2

    with_topic(tree, work, replicas=((1, 2),))


def test_a_leader_with_an_unclean_shutdown_that_no_controller_saw_is_replaced(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        assert state(running).leader == 1

    with_topic(tree, work, replicas=((1, 2, 0),))

    async def next_start(crashed: tuple[int, ...]) -> int:
        """All brokers crashed, and are back before there is a controller again."""
        async with running_controller(tree, brokers=(0, 1, 2), crashed=crashed) as running:
            await running.settled()
            return state(running).leader

    assert asyncio.run(next_start(())) == 1
    assert asyncio.run(next_start((1,))) == 2
    assert asyncio.run(next_start((0, 1, 2))) == 2


def test_a_leader_alone_in_sync_that_lost_records_begins_an_epoch(tree: Tree) -> None:
    """A follower out of sync may have what was lost, at offsets where the leader writes anew: in
    the same epoch nothing would tell the two apart.
    """
    epochs = []

    async def work(running: RunningController) -> None:
        await running.controller.alter_isrs(BrokerId(1), -1, [wanted(state(running), (1,))])
        assert state(running).isr == (1,)
        epochs.append(state(running).leader_epoch)

    with_topic(tree, work, replicas=((1, 2),))

    async def next_start(crashed: tuple[int, ...]) -> None:
        async with running_controller(tree, brokers=(0, 1, 2), crashed=crashed) as running:
            await running.settled()
            assert (state(running).leader, state(running).isr) == (1, (1,))
            epochs.append(state(running).leader_epoch)

    asyncio.run(next_start((2,)))
    asyncio.run(next_start((1,)))
    asyncio.run(next_start(()))
    assert epochs == [0, 0, 1, 1]


def test_after_a_power_cut_of_all_brokers_one_leads_once_all_are_back(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await die(running, 1, 2)
        await come(running, 2, unclean_shutdown=True)
        assert state(running).leader == -1
        await come(running, 1, unclean_shutdown=True)
        assert state(running).leader == 1

    with_topic(tree, work, replicas=((1, 2),))


def test_a_preferred_election_does_not_trust_a_broker_that_crashed(tree: Tree) -> None:
    """Another replica in sync, which is still down, may have what the preferred one has lost."""

    async def work(running: RunningController) -> None:
        await die(running, 1, 2)
        await come(running, 1, unclean_shutdown=True)
        answers = await running.controller.elect_leaders(ElectionType.PREFERRED, [FIRST])
        assert isinstance(answers[FIRST], PreferredLeaderNotAvailable)
        assert state(running).leader == -1
        await come(running, 2)
        assert state(running).leader == 2

    with_topic(tree, work, replicas=((1, 2),))


def test_a_leader_that_lost_records_is_replaced_despite_a_concurrent_state_change(
    tree: Tree,
) -> None:
    """The controller learns in one step that the leader died and came back, and its first write is
    refused.
    """

    async def work(running: RunningController) -> None:
        path = paths.partition_state(FIRST)
        node = await running.store.get(path)
        assert node.data is not None
        await running.store.set(path, node.data)
        await back_at_once(running, 1)
        assert (state(running).leader, state(running).isr) == (2, (2, 0))

    with_topic(tree, work)


async def back_at_once(running: RunningController, broker: int) -> None:
    """The broker dies and comes back without records between two reads of the registrations."""
    path = paths.broker(BrokerId(broker))
    address = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", 9092 + broker)
    back = encode(BrokerRegistration.of([address], 0, unclean_shutdown=True))
    await running.store.multi([Delete(path), Create(path, back, ephemeral=True)])
    await running.settled()


@pytest.mark.parametrize("crashed", [1, 2])
def test_a_replica_that_lost_records_leaves_the_isr_even_if_its_state_cannot_be_written(
    tree: Tree, crashed: int
) -> None:
    """Whether it led or followed. The state is written once the store permits it."""

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.denied = paths.partition_state(FIRST)
        await back_at_once(running, crashed)
        assert state(running).leader == (-1 if crashed == 1 else 1)
        assert crashed not in state(running).isr
        sent = [each for each in running.brokers.changes if crashed in each.joined][-1]
        known = sent.image.partition(FIRST)
        assert known is not None
        assert known.leader != crashed
        running.store.denied = None
        await running.controller._submit(lambda context: repair(context, lambda _: False))
        assert state(running).leader == (2 if crashed == 1 else 1)
        stored = decode(PartitionState, await running.store.get(paths.partition_state(FIRST)))
        assert (stored.leader, stored.isr) == (state(running).leader, state(running).isr)
        assert crashed not in stored.isr

    with_topic(tree, work)


async def stored_state(running: RunningController) -> PartitionState:
    return decode(PartitionState, await running.store.get(paths.partition_state(FIRST)))


def test_a_new_controller_demotes_a_leader_that_lost_records_even_if_it_cannot_write(
    tree: Tree,
) -> None:
    """Broker 1 crashed and came back while there was no controller."""

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        controller = running.controller
        controller.resign()
        await running.store.delete(paths.CONTROLLER)
        running.store.denied = paths.partition_state(FIRST)
        path = paths.broker(BrokerId(1))
        await running.store.delete(path)
        address = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", 9093)
        registration = BrokerRegistration.of([address], 0, unclean_shutdown=True)
        await register(running.store, BrokerId(1), registration)
        running.brokers.changes.clear()
        await controller.start()
        await running.settled()
        sent = [
            each.state
            for change in running.brokers.changes
            for each in change.partitions
            if each.topic_partition == FIRST
        ]
        assert [(each.leader, each.isr) for each in sent] == [(-1, (2, 0))]
        assert controller.image.brokers[BrokerId(1)].unclean_shutdown
        running.store.denied = None
        await controller._submit(lambda context: repair(context, lambda _: False))
        assert (state(running).leader, state(running).isr) == (2, (2, 0))
        assert not controller.image.brokers[BrokerId(1)].unclean_shutdown

    with_topic(tree, work)


@pytest.mark.parametrize("crashed", [1, 2])
def test_another_writer_does_not_bring_back_a_replica_that_lost_records(
    tree: Tree, crashed: int
) -> None:
    """The replica had left the ISR in the image only, and another writer changed the state in the
    store.
    """

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        path = paths.partition_state(FIRST)
        running.store.denied = path
        await back_at_once(running, crashed)
        running.store.denied = None
        node = await running.store.get(path)
        await running.store.set(path, node.data)
        running.brokers.changes.clear()
        await running.controller._submit(lambda context: repair(context, lambda _: False))
        await running.settled()
        leader = 2 if crashed == 1 else 1
        sent = [each.state for change in running.brokers.changes for each in change.partitions]
        assert [(each.leader, set(each.isr)) for each in sent] == [(leader, {leader, 0})]

    with_topic(tree, work, replicas=((1, 2, 0),))


def test_a_crashed_broker_is_not_trusted_while_the_store_still_has_it_in_an_isr(tree: Tree) -> None:
    """The next controller, which reads the store, would elect it."""

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.denied = paths.partition_state(FIRST)
        await back_at_once(running, 2)
        assert 2 not in state(running).isr
        assert 2 in (await stored_state(running)).isr
        assert running.controller.image.brokers[BrokerId(2)].unclean_shutdown
        running.store.denied = None
        await running.controller._submit(lambda context: repair(context, lambda _: False))
        assert 2 not in (await stored_state(running)).isr
        assert not running.controller.image.brokers[BrokerId(2)].unclean_shutdown

    with_topic(tree, work)


@pytest.mark.parametrize("is_denied", [False, True])
@pytest.mark.parametrize("requested", [(1, 0), (1, 2)])
def test_a_leader_gets_no_isr_that_differs_from_the_store(
    tree: Tree, requested: tuple[int, ...], is_denied: bool
) -> None:
    """Without broker 2 it would commit records that the store's ISR lacks. With it, before the
    repair, it would bring back a replica that has not caught up since its crash.
    """

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.denied = paths.partition_state(FIRST)
        await back_at_once(running, 2)
        if not is_denied:
            running.store.denied = None
        isr = wanted(state(running), requested)
        refused = (await running.controller.alter_isrs(BrokerId(1), -1, [isr]))[FIRST]
        assert isinstance(refused, KafkaError)
        assert refused.code not in OUTDATED | NOT_DONE, "it asks again"
        assert (await stored_state(running)).isr == (1, 2, 0)
        running.store.denied = None
        await running.controller._submit(lambda context: repair(context, lambda _: False))
        isr = wanted(state(running), (1, 0, 2))
        altered = (await running.controller.alter_isrs(BrokerId(1), -1, [isr]))[FIRST]
        assert isinstance(altered, PartitionRegistration)

    with_topic(tree, work)


def test_a_crashed_broker_is_trusted_in_partitions_that_are_newer_than_its_crash(
    tree: Tree,
) -> None:
    """Even while an older partition waits for another replica."""

    async def work(running: RunningController) -> None:
        await running.store.multi([Delete(paths.broker(BrokerId(each))) for each in (1, 2)])
        await running.settled()
        await come(running, 1, unclean_shutdown=True)
        assert (state(running).leader, state(running).isr) == (-1, (1, 2))
        await running.controller.create_topics([TopicSpec("u", assignments=((0, (3, 1)),))])
        await die(running, 3)
        assert state(running, TopicPartition("u", 0)).leader == 1
        assert running.controller.image.brokers[BrokerId(1)].unclean_shutdown

    with_topic(tree, work, replicas=((1, 2),), brokers=(0, 1, 2, 3))


def test_an_only_replica_keeps_leading_even_if_its_state_cannot_be_written(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.denied = paths.partition_state(FIRST)
        await back_at_once(running, 1)
        assert (state(running).leader, state(running).isr) == (1, (1,))

    with_topic(tree, work, replicas=((1,),))


def test_a_replica_waits_for_another_even_if_its_state_cannot_be_written(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.denied = paths.partition_state(FIRST)
        await running.store.delete(paths.broker(BrokerId(2)))
        await back_at_once(running, 1)
        assert (state(running).leader, state(running).isr) == (-1, (1, 2))
        running.store.denied = None
        await come(running, 2)
        assert state(running).leader == 2

    with_topic(tree, work, replicas=((1, 2),))


@pytest.mark.parametrize("unclean_shutdown", [True, False])
def test_a_new_controller_removes_brokers_after_an_unclean_shutdown_from_isrs(
    tree: Tree, unclean_shutdown: bool
) -> None:
    """A new controller cannot know whether the ISR membership dates from before the crash."""

    async def work(running: RunningController) -> None:
        assert (state(running).leader, state(running).isr) == (1, (1, 2, 0))
        running.controller.resign()
        await running.store.delete(paths.CONTROLLER)
        await running.store.delete(paths.broker(BrokerId(1)))
        await come(running, 1, unclean_shutdown=unclean_shutdown)
        await running.controller.start()
        expected = (2, (2, 0)) if unclean_shutdown else (1, (1, 2, 0))
        assert (state(running).leader, state(running).isr) == expected

    async def come(running: RunningController, broker: int, *, unclean_shutdown: bool) -> None:
        address = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", 9092 + broker)
        registration = BrokerRegistration.of([address], 0, unclean_shutdown=unclean_shutdown)
        await register(running.store, BrokerId(broker), registration)

    with_topic(tree, work)


def test_a_broker_that_has_left_every_isr_is_trusted_again(tree: Tree) -> None:
    """Otherwise two brokers that once lost power could not take over from a third."""

    async def work(running: RunningController) -> None:
        for broker in (1, 2):
            await die(running, broker)
            await come(running, broker, unclean_shutdown=True)
            node = await running.store.get(paths.broker(BrokerId(broker)))
            assert decode(BrokerRegistration, node).unclean_shutdown is UNSET
            members = (*state(running).isr, broker)
            await running.controller.alter_isrs(BrokerId(0), -1, [wanted(state(running), members)])
        assert set(state(running).isr) == {0, 1, 2}
        running.controller.resign()
        await running.store.delete(paths.CONTROLLER)
        await running.controller.start()
        assert set(state(running).isr) == {0, 1, 2}
        assert state(running).leader == 0

    with_topic(tree, work, replicas=((0, 1, 2),))


def test_an_unclean_shutdown_stays_marked_until_a_better_replica_is_back(tree: Tree) -> None:
    async def is_trusted(running: RunningController) -> bool:
        node = await running.store.get(paths.broker(BrokerId(1)))
        return decode(BrokerRegistration, node).unclean_shutdown is UNSET

    async def work(running: RunningController) -> None:
        await die(running, 1, 2)
        await come(running, 1, unclean_shutdown=True)
        assert (state(running).leader, state(running).isr) == (-1, (1, 2))
        assert not await is_trusted(running)
        await come(running, 2)
        assert (state(running).leader, state(running).isr) == (2, (2,))
        assert await is_trusted(running)

    with_topic(tree, work, replicas=((1, 2),))


def test_a_replica_that_caught_up_is_trusted_although_another_partition_still_waits(
    tree: Tree,
) -> None:
    """The first waits for broker 2. In the second, broker 1 has caught up since it came back."""

    async def work(running: RunningController) -> None:
        await die(running, 1, 2)
        await come(running, 1, unclean_shutdown=True)
        caught_up = wanted(state(running, SECOND), (3, 1), topic_partition=SECOND)
        await running.controller.alter_isrs(BrokerId(3), -1, [caught_up])
        await die(running, 3)
        assert (state(running).leader, state(running).isr) == (-1, (1, 2))
        assert (state(running, SECOND).leader, state(running, SECOND).isr) == (1, (1,))

    with_topic(tree, work, replicas=((1, 2), (3, 1)), brokers=(0, 1, 2, 3))


def test_a_mark_is_cleared_although_the_broker_has_caught_up_elsewhere_before(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await die(running, 1, 2)
        await come(running, 1, unclean_shutdown=True)
        caught_up = wanted(state(running, SECOND), (3, 1), topic_partition=SECOND)
        await running.controller.alter_isrs(BrokerId(3), -1, [caught_up])
        await come(running, 2)
        assert (state(running).leader, state(running).isr) == (2, (2,))
        node = await running.store.get(paths.broker(BrokerId(1)))
        assert decode(BrokerRegistration, node).unclean_shutdown is UNSET

    with_topic(tree, work, replicas=((1, 2), (3, 1)), brokers=(0, 1, 2, 3))


def test_a_replica_that_crashed_again_after_it_had_caught_up_is_not_trusted(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await die(running, 1, 2)
        await come(running, 1, unclean_shutdown=True)
        caught_up = wanted(state(running, SECOND), (3, 1), topic_partition=SECOND)
        await running.controller.alter_isrs(BrokerId(3), -1, [caught_up])
        await die(running, 1, 3)
        await come(running, 1, unclean_shutdown=True)
        assert state(running, SECOND).leader == -1

    with_topic(tree, work, replicas=((1, 2), (3, 1)), brokers=(0, 1, 2, 3))
