"""The controller's decisions when brokers die, return, shut down, lag or lose a directory."""

from typing import Any

import pytest

from penstock.controller import broker_changes
from penstock.controller import repair as repair_module
from penstock.controller.config_changes import UNCLEAN_ELECTION
from penstock.controller.configs import (
    AlterOperation,
    BrokerResource,
    ConfigAlteration,
    TopicResource,
)
from penstock.controller.controller_election import ControllerElection
from penstock.controller.topics import TopicSpec
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.image import PartitionRegistration
from penstock.metadata.records import (
    ConfigOverrides,
    LogDirEvent,
    encode,
)
from penstock.metadata.store import SessionState
from penstock.metadata.tree import Tree
from penstock.testing.controllers import RunningController
from penstock.types import BrokerId, TopicPartition
from support.brokers.controlled_topic import FIRST, SECOND, come, die, state, wanted, with_topic


async def allow_unclean(
    running: RunningController, resource: TopicResource | BrokerResource
) -> None:
    allowed = ConfigAlteration(UNCLEAN_ELECTION, AlterOperation.SET, "true")
    await running.controller.alter_config(resource, [allowed])
    await running.settled()


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
