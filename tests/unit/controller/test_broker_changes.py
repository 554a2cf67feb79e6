"""The controller's decisions when brokers die, return, shut down, lag or lose a directory."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest
from msgspec import UNSET

from penstock.clock import SystemClock
from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.controller import broker_changes
from penstock.controller import repair as repair_module
from penstock.controller.broker_registration import register
from penstock.controller.config_changes import UNCLEAN_ELECTION
from penstock.controller.configs import (
    AlterOperation,
    BrokerResource,
    ConfigAlteration,
    TopicResource,
)
from penstock.controller.controller_election import ControllerElection
from penstock.controller.isr_changes import IsrMember, RequestedIsr
from penstock.controller.leader_election import PreferredLeaderNotAvailable
from penstock.controller.repair import repair
from penstock.controller.requested_elections import ElectionType
from penstock.controller.topics import TopicSpec
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.image import PartitionRegistration
from penstock.metadata.records import (
    ConfigOverrides,
    LogDirEvent,
    PartitionState,
    decode,
    encode,
)
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import Create, Delete, SessionState
from penstock.metadata.tree import Tree
from penstock.replication.proposal import NOT_DONE, OUTDATED
from penstock.testing.controllers import LossyStore, RunningController, running_controller
from penstock.types import BrokerId, TopicPartition

FIRST = TopicPartition("t", 0)
SECOND = TopicPartition("t", 1)


@pytest.fixture
def tree() -> Iterator[Tree]:
    tree = Tree.in_memory(SystemClock())
    yield tree
    tree.close()


def with_topic(
    tree: Tree,
    work: Callable[[RunningController], Awaitable[None]],
    replicas: Sequence[tuple[int, ...]] = ((1, 2, 0), (0, 1, 2)),
    brokers: Sequence[int] = (0, 1, 2),
    configs: dict[str, str | None] | None = None,
) -> None:
    async def run() -> None:
        async with running_controller(tree, brokers=brokers) as running:
            assignments = tuple(enumerate(replicas))
            new = TopicSpec("t", assignments=assignments, configs=configs or {})
            await running.controller.create_topics([new])
            await work(running)

    asyncio.run(run())


def state(
    running: RunningController, topic_partition: TopicPartition = FIRST
) -> PartitionRegistration:
    partition = running.controller.image.partition(topic_partition)
    assert partition is not None
    return partition


async def die(running: RunningController, *brokers: int) -> None:
    for broker in brokers:
        await running.store.delete(paths.broker(BrokerId(broker)))
    await running.settled()


async def come(running: RunningController, broker: int, *, unclean_shutdown: bool = False) -> None:
    address = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", 9092 + broker)
    registration = BrokerRegistration.of([address], 0, unclean_shutdown=unclean_shutdown)
    await register(running.store, BrokerId(broker), registration)
    await running.settled()


async def allow_unclean(
    running: RunningController, resource: TopicResource | BrokerResource
) -> None:
    allowed = ConfigAlteration(UNCLEAN_ELECTION, AlterOperation.SET, "true")
    await running.controller.alter_config(resource, [allowed])
    await running.settled()


def wanted(
    partition: PartitionRegistration,
    isr: Sequence[int | tuple[int, int]],
    *,
    topic_partition: TopicPartition = FIRST,
    leader_epoch: int | None = None,
    partition_epoch: int | None = None,
) -> RequestedIsr:
    members = [each if isinstance(each, tuple) else (each, -1) for each in isr]
    return RequestedIsr(
        topic_partition,
        partition.leader_epoch if leader_epoch is None else leader_epoch,
        partition.partition_epoch if partition_epoch is None else partition_epoch,
        tuple(IsrMember(BrokerId(broker), epoch) for broker, epoch in members),
    )


@pytest.mark.row("A064", "A085", "A090", "A166")
def test_a_dead_leader_is_succeeded_by_the_next_in_the_assignment(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await die(running, 1)
        partition = state(running)
        assert (partition.leader, partition.isr, partition.leader_epoch) == (2, (2, 0), 1)
        assert partition.offline_replicas == (1,)
        # The death of a follower begins a new epoch too, because the leader must learn of it.
        followed = state(running, SECOND)
        assert (followed.leader, followed.isr, followed.leader_epoch) == (0, (0, 2), 1)

    with_topic(tree, work)


def test_a_broker_that_comes_back_receives_everything_and_stays_out_of_sync(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await die(running, 1)
        await come(running, 1)
        joined = [each for each in running.brokers.changes if 1 in each.joined]
        assert len(joined) == 2  # at startup, and now
        assert state(running).isr == (2, 0)
        assert state(running).offline_replicas == ()

    with_topic(tree, work)


def test_a_broker_that_registers_again_unnoticed_counts_as_having_died(
    tree: Tree,
) -> None:
    async def work(running: RunningController) -> None:
        await running.store.delete(paths.broker(BrokerId(1)))
        await come(running, 1)
        assert (state(running).leader, state(running).isr) == (2, (2, 0))

    with_topic(tree, work)


@pytest.mark.row("A077")
def test_a_partition_waits_for_its_last_in_sync_replica(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await die(running, 2)
        await die(running, 1)
        partition = state(running)
        assert (partition.leader, partition.isr) == (-1, (1,))
        await come(running, 2)
        assert state(running).leader == -1
        await come(running, 1)
        assert (state(running).leader, state(running).isr) == (1, (1,))

    with_topic(tree, work, replicas=((1, 2),))


@pytest.mark.row("A077")
def test_an_unclean_leader_is_elected_where_the_topic_allows_it(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await die(running, 2)
        await die(running, 1)
        await come(running, 2)
        partition = state(running)
        assert (partition.leader, partition.isr, partition.recovering) == (2, (2,), True)
        assert running.controller.counts.unclean == 1

    configs: dict[str, str | None] = {"unclean.leader.election.enable": "true"}
    with_topic(tree, work, replicas=((1, 2),), configs=configs)


@pytest.mark.parametrize("resource", [TopicResource("t"), BrokerResource(None)])
@pytest.mark.parametrize("by_tool", [False, True])
def test_an_unclean_leader_is_elected_once_it_is_allowed(
    tree: Tree, resource: TopicResource | BrokerResource, by_tool: bool
) -> None:
    """Operators allow it to give up the in-sync replicas."""

    async def work(running: RunningController) -> None:
        await die(running, 2)
        await die(running, 1)
        await come(running, 2)
        assert state(running).leader == -1
        if by_tool:
            path = (
                paths.topic_config("t")
                if isinstance(resource, TopicResource)
                else paths.broker_config(None)
            )
            data = encode(ConfigOverrides(config={UNCLEAN_ELECTION: "true"}))
            if not await running.store.exists(path):
                await running.store.create(path)
            await running.store.set(path, data)
            running.controller.reread_configs()
        else:
            await allow_unclean(running, resource)
        await running.settled()
        assert (state(running).leader, state(running).recovering) == (2, True)

    with_topic(tree, work, replicas=((1, 2),))


def test_only_the_altered_topic_is_repaired(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """One repair of everything for each of many altered topics would hold the broker up."""
    looked_at: list[str] = []
    repaired = repair_module._repaired

    def counted(context: Any, allows: Any, where: TopicPartition, *args: Any) -> Any:
        looked_at.append(where.topic)
        return repaired(context, allows, where, *args)

    async def work(running: RunningController) -> None:
        other = TopicSpec("other", assignments=((0, (1, 2)),))
        await running.controller.create_topics([other])
        await die(running, 2)
        await die(running, 1)
        await come(running, 2)
        monkeypatch.setattr(repair_module, "_repaired", counted)
        await allow_unclean(running, TopicResource("t"))
        assert state(running).leader == 2
        assert state(running, TopicPartition("other", 0)).leader == -1
        assert looked_at == ["t"]

    with_topic(tree, work, replicas=((1, 2),))


def test_a_reassignment_is_complete_once_its_target_leads_uncleanly(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await running.controller.reassign(FIRST, [2])
        await die(running, 1)
        assert state(running).leader == -1
        await allow_unclean(running, TopicResource("t"))
        partition = state(running)
        assert (partition.leader, partition.isr, partition.replicas) == (2, (2,), (2,))

    with_topic(tree, work, replicas=((1,),))


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


def test_a_controlled_shutdown_moves_leadership_where_it_can(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        alone = TopicPartition("u", 0)
        await running.controller.create_topics([TopicSpec("u", assignments=((0, (1,)),))])
        left = await running.controller.shut_down(BrokerId(1), -1)
        assert left == [alone]
        assert (state(running).leader, state(running).isr) == (2, (2,))
        # No other replica has it, so the broker leads it until it is gone.
        await die(running, 2)
        assert state(running, alone).leader == 1
        await die(running, 1)
        assert state(running, alone).leader == -1

    with_topic(tree, work, replicas=((1, 2),))


def test_a_controlled_shutdown_elects_no_replica_that_lacks_records(tree: Tree) -> None:
    """Not even where the topic allows it: the replica may catch up before the broker stops."""

    async def work(running: RunningController) -> None:
        await die(running, 2)
        await come(running, 2)
        assert state(running).isr == (1,)
        assert await running.controller.shut_down(BrokerId(1), -1) == [FIRST]
        assert (state(running).leader, state(running).isr) == (1, (1,))
        await running.controller.alter_isrs(BrokerId(1), -1, [wanted(state(running), (1, 2))])
        assert await running.controller.shut_down(BrokerId(1), -1) == []
        assert (state(running).leader, state(running).isr) == (2, (2,))

    allowed: dict[str, str | None] = {"unclean.leader.election.enable": "true"}
    with_topic(tree, work, replicas=((1, 2),), configs=allowed)


def test_a_broker_that_is_shutting_down_leads_nothing_new(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await running.controller.shut_down(BrokerId(1), -1)
        new = TopicSpec("u", assignments=((0, (1, 2)),))
        await running.controller.create_topics([new])
        made = state(running, TopicPartition("u", 0))
        assert (made.leader, made.isr) == (2, (2,))
        with pytest.raises(KafkaError) as refusal:
            await running.controller.shut_down(BrokerId(1), 12345)
        assert refusal.value.code == ErrorCode.STALE_BROKER_EPOCH

    with_topic(tree, work)


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
        told = [each for each in running.brokers.changes if crashed in each.joined][-1]
        known = told.image.partition(FIRST)
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
        told = [
            each.state
            for change in running.brokers.changes
            for each in change.partitions
            if each.topic_partition == FIRST
        ]
        assert [(each.leader, each.isr) for each in told] == [(-1, (2, 0))]
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
        told = [each.state for change in running.brokers.changes for each in change.partitions]
        assert [(each.leader, set(each.isr)) for each in told] == [(leader, {leader, 0})]

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


def test_a_failed_directory_affects_only_its_replicas(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        event = encode(LogDirEvent(broker=BrokerId(1)))
        await running.store.create(paths.LOG_DIR_EVENT_PREFIX, event, sequential=True)
        await running.settled()
        assert 1 in running.last_change.joined  # it receives all its replicas again
        assert await running.store.children(paths.LOG_DIR_EVENT_NOTIFICATION) == []
        epoch = running.controller.image.brokers[BrokerId(1)].epoch
        running.controller.replicas_failed(BrokerId(1), epoch - 1, [FIRST])  # in an earlier epoch
        await running.settled()
        assert (state(running).leader, state(running).isr) == (1, (1, 2, 0))
        running.controller.replicas_failed(BrokerId(1), epoch, [FIRST])
        await running.settled()
        assert (state(running).leader, state(running).isr) == (2, (2, 0))
        assert state(running).offline_replicas == (1,)
        assert state(running, SECOND).isr == (0, 1, 2)

    with_topic(tree, work)


def test_a_replica_whose_log_is_usable_again_may_join_and_lead(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        epoch = running.controller.image.brokers[BrokerId(1)].epoch
        running.controller.replicas_failed(BrokerId(1), epoch, [FIRST, SECOND])
        await running.settled()
        await running.controller._submit(broker_changes.resend_failed)  # as after a pause
        assert {each.topic_partition for each in running.last_change.partitions} == {FIRST, SECOND}
        running.controller.replicas_usable(BrokerId(1), epoch - 1, [FIRST])  # in an earlier epoch
        await running.settled()
        assert state(running).offline_replicas == (1,)
        running.controller.replicas_usable(BrokerId(1), epoch, [FIRST])
        await running.settled()
        assert state(running).offline_replicas == ()
        assert state(running, SECOND).offline_replicas == (1,)

    with_topic(tree, work)


def test_a_replica_that_was_moved_away_comes_back_to_a_working_log(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        epoch = running.controller.image.brokers[BrokerId(1)].epoch
        running.controller.replicas_failed(BrokerId(1), epoch, [FIRST])
        await running.settled()
        await running.controller.reassign(FIRST, (2, 0), factor_may_change=True)
        assert state(running).replicas == (2, 0)
        await running.controller.reassign(FIRST, (2, 0, 1), factor_may_change=True)
        assert state(running).adding_replicas == (1,)
        assert state(running).offline_replicas == ()
        joined = wanted(state(running), (2, 0, 1))
        outcomes = await running.controller.alter_isrs(BrokerId(2), -1, [joined])
        assert not isinstance(outcomes[FIRST], KafkaError)
        assert state(running).isr == (2, 0, 1)

    with_topic(tree, work)


def test_a_broker_that_refuses_connections_loses_its_registration(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        broker = running.controller.image.brokers[BrokerId(1)]
        running.controller.connection_refused(broker.id, broker.epoch - 1)  # in an earlier epoch
        await running.settled()
        assert state(running).leader == 1
        running.controller.connection_refused(broker.id, broker.epoch)
        await running.settled()
        await running.settled()
        assert not await running.store.exists(paths.broker(broker.id))
        assert state(running).leader == 2

    with_topic(tree, work)


def test_preferred_leaders_are_elected_for_brokers_that_lead_too_few_partitions(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await die(running, 1)
        await come(running, 1)
        await running.controller.balance_leaders()
        assert state(running).leader == 2  # the preferred leader is not in sync yet
        caught_up = wanted(state(running), (2, 0, 1))
        await running.controller.alter_isrs(BrokerId(2), -1, [caught_up])
        await running.controller.balance_leaders()
        assert state(running).leader == 1

    with_topic(tree, work)


def test_an_isr_change_keeps_the_leader_epoch(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        before = state(running)
        outcomes = await running.controller.alter_isrs(BrokerId(1), -1, [wanted(before, (1, 0))])
        after = outcomes[FIRST]
        assert isinstance(after, PartitionRegistration)
        assert (after.isr, after.leader_epoch) == ((1, 0), before.leader_epoch)
        assert after.partition_epoch == before.partition_epoch + 1
        assert running.last_change.metadata_only == (FIRST,)
        assert running.last_change.partitions == ()
        # The same request again finds the ISR as requested.
        again = await running.controller.alter_isrs(BrokerId(1), -1, [wanted(before, (0, 1))])
        assert again[FIRST] == after

    with_topic(tree, work)


@pytest.mark.parametrize(
    ("sender", "isr", "epochs", "code"),
    [
        (1, (1, 2), {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        (1, (1, 2), {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        (1, (1, 2), {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        (1, (1, 2), {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        (2, (1, 2), {}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (1, (2, 0), {}, ErrorCode.INVALID_REQUEST),
        (1, (1, 2, 7), {}, ErrorCode.INVALID_REQUEST),
        (1, (1, (2, 3)), {}, ErrorCode.INELIGIBLE_REPLICA),
        (
            1,
            (1, 2),
            {"topic_partition": TopicPartition("t", 9)},
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
    ],
)
def test_invalid_isr_changes_are_refused(
    tree: Tree,
    sender: int,
    isr: tuple[int | tuple[int, int], ...],
    epochs: dict[str, int],
    code: ErrorCode,
) -> None:
    async def work(running: RunningController) -> None:
        before = state(running)
        change = wanted(before, isr, **epochs)  # type: ignore[arg-type]
        outcomes = await running.controller.alter_isrs(BrokerId(sender), -1, [change])
        refusal = outcomes[change.topic_partition]
        assert isinstance(refusal, KafkaError)
        assert refusal.code == code
        assert (state(running).leader, state(running).isr) == (before.leader, before.isr)

    with_topic(tree, work)


def test_a_dead_broker_does_not_join_an_isr(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await die(running, 0)
        change = wanted(state(running), (1, 2, 0))
        outcomes = await running.controller.alter_isrs(BrokerId(1), -1, [change])
        refusal = outcomes[FIRST]
        assert isinstance(refusal, KafkaError)
        assert refusal.code == ErrorCode.INELIGIBLE_REPLICA
        with pytest.raises(KafkaError) as stale:
            await running.controller.alter_isrs(BrokerId(1), 12345, [change])
        assert stale.value.code == ErrorCode.STALE_BROKER_EPOCH

    with_topic(tree, work)


def test_topics_and_deletions_written_by_tools_are_processed(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        assignment = b'{"partitions":{"0":[2,1]},"topic_id":"2TjEEIxXQEqTSneHmIscYQ","version":3}'
        await running.store.create(paths.topic("by-hand"), assignment)
        await running.settled()
        assert state(running, TopicPartition("by-hand", 0)).leader == 2
        await running.store.create(paths.deleted_topic("by-hand"))
        await running.settled()
        await running.settled()
        assert "by-hand" not in running.controller.image.topics
        assert not await running.store.exists(paths.topic("by-hand"))

    with_topic(tree, work)


def test_changes_noticed_before_the_controller_is_active_do_no_harm(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        running.controller.resign()
        running.controller.replicas_deleted(BrokerId(1), [FIRST])
        running.controller.connection_refused(BrokerId(1), 1)
        with pytest.raises(KafkaError) as refusal:
            await running.settled()
        assert refusal.value.code == ErrorCode.NOT_CONTROLLER
        await running.store.delete(paths.CONTROLLER)
        await running.controller.start()
        assert running.controller.is_active

    with_topic(tree, work)


def test_requests_of_old_tools_are_executed(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        moves = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,1,0]},'
        moves += b'{"topic":"unknown","partition":0,"replicas":[1]}]}'
        await running.store.create(paths.REASSIGN_PARTITIONS, moves)
        await running.settled()
        assert state(running).replicas == (2, 1, 0)
        assert not await running.store.exists(paths.REASSIGN_PARTITIONS)
        elections = b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'
        await running.store.create(paths.PREFERRED_REPLICA_ELECTION, elections)
        await running.settled()
        assert state(running).leader == 2
        assert not await running.store.exists(paths.PREFERRED_REPLICA_ELECTION)

    with_topic(tree, work)


def test_a_tools_reassignments_stay_listed_until_they_are_complete(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        moves = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[0]}]}'
        await running.store.create(paths.REASSIGN_PARTITIONS, moves)
        await running.settled()
        assert await running.store.exists(paths.REASSIGN_PARTITIONS)
        partition = state(running)
        await running.controller.alter_isrs(
            partition.leader, -1, [wanted(partition, (*partition.isr, 0))]
        )
        assert state(running).replicas == (0,)
        assert not await running.store.exists(paths.REASSIGN_PARTITIONS)

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


def test_changes_made_while_the_store_was_away_are_read(tree: Tree) -> None:
    """After a lost connection to the store, no watch reports changes made meanwhile."""

    async def work(running: RunningController) -> None:
        controller = running.controller
        candidacy = ControllerElection(running.store, controller, lambda _: None)
        await candidacy.start()
        controller._watches.cancel()  # a change without notification
        await running.store.delete(paths.broker(BrokerId(1)))
        await running.settled()
        assert state(running).leader == 1
        candidacy._session_changed(SessionState.CONNECTED)
        await running.settled()
        assert state(running).leader == 2

    with_topic(tree, work)
