"""A controller that lost the store, or takes over half-done work, continues."""

import asyncio
from contextlib import suppress

import pytest
from msgspec.structs import replace

from penstock.controller import controller
from penstock.controller.context import ControllerContext
from penstock.controller.epoch import NotController
from penstock.controller.topics import PlannedTopic, TopicSpec
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.errors import AccessDenied
from penstock.metadata.image import ImageDelta, PartitionRegistration
from penstock.metadata.records import (
    PartitionReassignment,
    PartitionReassignments,
    PartitionState,
    TopicAssignment,
    decode,
    encode,
)
from penstock.metadata.tree import Tree
from penstock.replication.proposal import OUTDATED
from penstock.testing.controllers import LossyStore, RunningController, running_controller
from penstock.types import BrokerId
from penstock.wire.enums import ElectionType
from support.brokers.controlled_topic import FIRST, state, wanted
from support.brokers.resigning_controller import candidate, is_led_by, until, with_topic

STATE = paths.partition_state(FIRST)


@pytest.mark.parametrize("takes_place", [False, True])
def test_the_outcome_of_a_lost_leader_write_is_found_out(tree: Tree, takes_place: bool) -> None:
    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.loses, running.store.takes_place = STATE, takes_place
        await running.store.delete(paths.broker(BrokerId(1)))
        await until(lambda: is_led_by(running, 2))
        stored = await running.store.get(STATE)
        assert decode(PartitionState, stored).leader == 2
        assert state(running).partition_epoch == stored.version

    with_topic(tree, work)


@pytest.mark.parametrize("takes_place", [False, True])
def test_the_outcome_of_a_lost_isr_write_is_found_out(tree: Tree, takes_place: bool) -> None:
    """The leader learns that the outcome is unknown, not that its state is stale. It retries."""

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.loses, running.store.takes_place = STATE, takes_place
        change = wanted(state(running), (1, 2))
        with pytest.raises(KafkaError, match="lost the connection"):
            await running.controller.alter_isrs(BrokerId(1), -1, [change])
        await until(lambda: running.controller.is_active)
        outcomes = await running.controller.alter_isrs(BrokerId(1), -1, [change])
        outcome = outcomes[FIRST]
        assert isinstance(outcome, PartitionRegistration)
        assert (outcome.isr, outcome.partition_epoch) == ((1, 2), 1)

    with_topic(tree, work)


def test_a_state_written_by_another_writer_is_applied_in_a_new_epoch(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        change = wanted(state(running), (1, 2))
        record = decode(PartitionState, await running.store.get(STATE))
        assert record.isr == (1, 2, 0)
        await running.store.set(STATE, encode(record))
        outcomes = await running.controller.alter_isrs(BrokerId(1), -1, [change])
        assert isinstance(outcomes[FIRST], KafkaError)
        await running.settled()
        known = state(running)
        assert (known.leader, known.leader_epoch, known.partition_epoch) == (1, 1, 2)
        assert FIRST in {each.topic_partition for each in running.last_change.partitions}
        outcomes = await running.controller.alter_isrs(BrokerId(1), -1, [wanted(known, (1, 2))])
        assert isinstance(outcomes[FIRST], PartitionRegistration)

    with_topic(tree, work)


def test_a_half_completed_reassignment_does_not_stop_a_controller(tree: Tree) -> None:
    """The state names only the target as in sync, the assignment is still in progress, and the
    target is down.
    """

    async def begin() -> None:
        async with running_controller(tree, brokers=(0, 1, 2)) as running:
            news = [
                TopicSpec("t", assignments=((0, (2,)),)),
                TopicSpec("u", assignments=((0, (1,)),)),
            ]
            await running.controller.create_topics(news)
            made = running.controller.image.topics["t"]
            assignment = TopicAssignment(
                partitions={0: (BrokerId(2), BrokerId(1))},
                topic_id=TopicAssignment.of(made.id, {}).topic_id,
                adding_replicas={0: (BrokerId(2),)},
                removing_replicas={0: (BrokerId(1),)},
            )
            await running.store.set(paths.topic("t"), encode(assignment))

    async def take_over() -> None:
        async with running_controller(tree, brokers=(0, 1)) as running:
            assert state(running).leader == -1
            assert await running.controller.create_topics([TopicSpec("later")])
            await register_again(running, 2)
            await running.settled()
            known = state(running)
            assert (known.replicas, known.leader, known.removing_replicas) == ((2,), 2, ())

    asyncio.run(begin())
    asyncio.run(take_over())


async def register_again(running: RunningController, broker: int) -> None:
    registration = (await running.store.get(paths.broker(BrokerId(0)))).data
    await running.store.create(paths.broker(BrokerId(broker)), registration, ephemeral=True)


def test_a_takeover_that_fails_leaves_no_channels_behind(tree: Tree) -> None:
    """It has sent control requests, and then loses the store as it resumes a reassignment."""

    async def work(running: RunningController) -> None:
        store = running.store
        assert isinstance(store, LossyStore)
        await running.controller.reassign(FIRST, [1, 0])
        assert running.brokers.resignations == 0
        store.loses = STATE
        await store.delete(paths.CONTROLLER)
        await until(lambda: store.loses is None and running.controller.is_active)
        assert running.brokers.resignations == 2, "once as it was deposed"

    with_topic(tree, work, replicas=(1, 2))


def test_responses_during_a_takeover_count(tree: Tree) -> None:
    """A controller sends StopReplica before it is active, and the logs are deleted at once."""

    async def work(running: RunningController) -> None:
        running.controller.resign()
        await running.store.create(paths.deleted_topic("t"))
        await until(lambda: running.controller.is_active)
        await running.settled()
        assert not await running.store.exists(paths.topic("t"))
        assert not await running.store.exists(paths.deleted_topic("t"))

    with_topic(tree, work)


def test_a_name_is_free_again_after_settings_were_read_during_its_deletion(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await running.store.delete(paths.broker(BrokerId(2)))
        await running.settled()
        await running.controller.delete_topics(["t"])
        running.controller.reread_configs()
        await running.settled()
        assert "t" in running.controller.image.deleting, "it waits for broker 2"
        await register_again(running, 2)
        await running.settled()
        await running.settled()
        (made,) = await running.controller.create_topics([TopicSpec("t")])
        assert isinstance(made, PlannedTopic), made
        assert running.controller.image.topic_configs["t"] == {}

    with_topic(tree, work)


@pytest.mark.parametrize("has_foreign_node", [False, True])
def test_nodes_that_cannot_be_removed_do_not_block_other_topics(
    tree: Tree, has_foreign_node: bool
) -> None:
    async def work(running: RunningController) -> None:
        await running.controller.create_topics([TopicSpec("u")])
        assert isinstance(running.store, LossyStore)
        running.store.denied = paths.partition(FIRST)
        if has_foreign_node:
            await running.store.create(f"{paths.partitions('t')}/odd")
        await running.controller.delete_topics(["t", "u"])
        await running.settled()
        assert await running.store.exists(paths.topic("t"))
        assert await running.store.exists(paths.deleted_topic("t"))
        assert not await running.store.exists(paths.topic("u"))
        assert running.controller.is_active

    with_topic(tree, work)


def test_nodes_that_could_not_be_removed_are_removed_later(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else happens in the cluster: without the retry the name would stay in use."""
    monkeypatch.setattr(controller, "REPAIR_AGAIN_S", 0.05)

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.denied = STATE
        await running.controller.delete_topics(["t"])
        await running.settled()
        assert running.controller.image.deleting == {"t"}
        running.store.denied = None
        await until(lambda: not running.controller.image.deleting)
        (created,) = await running.controller.create_topics([TopicSpec("t")])
        assert isinstance(created, PlannedTopic)

    with_topic(tree, work)


def test_a_topic_created_again_does_not_inherit_an_unwritten_state(
    tree: Tree,
) -> None:
    """Its leader could not alter the ISR until some broker joins or leaves."""

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.denied = STATE
        await running.controller.reassign(FIRST, [1, 0])
        running.store.denied = None
        await running.controller.delete_topics(["t"])
        await running.settled()
        new = TopicSpec("t", assignments=((0, (1, 2)),))
        await running.controller.create_topics([new])
        answers = await running.controller.alter_isrs(
            BrokerId(1), -1, [wanted(state(running), [1])]
        )
        assert isinstance(answers[FIRST], PartitionRegistration)

    with_topic(tree, work, replicas=(1, 2))


def test_a_failed_state_write_is_retried_after_a_pause(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "REPAIR_AGAIN_S", 0.5)

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.denied = STATE
        await running.store.delete(paths.broker(BrokerId(1)))
        for _ in range(10):
            await running.settled()
        assert running.store.denials < 5, "tried again and again without a pause"
        assert state(running).leader == -1, "broker 1 is dead, and the next may not be written"
        running.store.denied = None
        await until(lambda: is_led_by(running, 2))

    with_topic(tree, work)


def test_a_reassignment_begins_once_the_state_can_be_written(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its assignment is written already; the leader and the new replica must learn of it."""
    monkeypatch.setattr(controller, "REPAIR_AGAIN_S", 0.05)

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.denied = STATE
        await running.controller.reassign(FIRST, [1, 0])
        assert state(running).adding_replicas == (0,)
        running.store.denied = None
        await until(lambda: state(running).leader_epoch == 1)
        (reported,) = running.last_change.partitions
        assert (reported.state.replicas, reported.state.isr) == ((1, 0, 2), (1, 2))

    with_topic(tree, work, replicas=(1, 2))


@pytest.mark.parametrize("target", [None, [1, 2], [2, 1]])
def test_replicas_of_a_cancelled_reassignment_stop_once_the_state_can_be_written(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, target: list[int] | None
) -> None:
    """They are no longer assigned: nothing else would ever stop them."""
    monkeypatch.setattr(controller, "REPAIR_AGAIN_S", 0.05)

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        await running.controller.reassign(FIRST, [1, 0])
        running.store.denied = STATE
        await running.controller.reassign(FIRST, target)
        assert 0 not in state(running).replicas
        assert running.last_change.stopped == ()
        running.store.denied = None
        await until(lambda: state(running).leader_epoch == 2)
        stopped = [each for change in running.brokers.changes for each in change.stopped]
        assert [(each.replicas, each.delete, each.leader_epoch) for each in stopped] == [
            ((0,), True, 2)
        ]

    with_topic(tree, work, replicas=(1, 2))


def test_a_leader_learns_of_a_state_written_before_the_controller_took_over(
    tree: Tree,
) -> None:
    """The leader waits for a newer leader epoch than it knows, and its ISR cannot change until
    then.
    """

    async def work(running: RunningController) -> None:
        known = state(running)
        node = await running.store.get(STATE)
        await running.store.set(STATE, node.data)
        running.controller.resign()
        await until(lambda: running.controller.is_active)
        assert state(running).leader_epoch == known.leader_epoch
        isr = wanted(known, (1, 2))
        refused = (await running.controller.alter_isrs(BrokerId(1), -1, [isr]))[FIRST]
        assert isinstance(refused, KafkaError)
        assert refused.code == ErrorCode.INVALID_UPDATE_VERSION
        await running.settled()
        assert state(running).leader_epoch == known.leader_epoch + 1
        assert [each.topic_partition for each in running.last_change.partitions] == [FIRST]

    with_topic(tree, work)


def test_a_leader_whose_isr_cannot_be_written_may_propose_it_again(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.denied = STATE
        isr = wanted(state(running), (1, 2))
        refused = (await running.controller.alter_isrs(BrokerId(1), -1, [isr]))[FIRST]
        assert isinstance(refused, AccessDenied)
        assert refused.code not in OUTDATED
        running.store.denied = None
        altered = (await running.controller.alter_isrs(BrokerId(1), -1, [isr]))[FIRST]
        assert isinstance(altered, PartitionRegistration)
        assert altered.isr == (1, 2)

    with_topic(tree, work)


def test_a_repair_that_completes_a_tools_reassignment_removes_its_request(tree: Tree) -> None:
    """The state with the new replica in the ISR comes from another writer."""

    async def work(running: RunningController) -> None:
        target = (BrokerId(1), BrokerId(2))
        wanted = PartitionReassignments(partitions=(PartitionReassignment("t", 0, target),))
        await running.store.create(paths.REASSIGN_PARTITIONS, encode(wanted))
        await running.settled()
        record = decode(PartitionState, await running.store.get(STATE))
        assert record.isr == (0, 1)
        await running.store.set(STATE, encode(replace(record, isr=(*record.isr, BrokerId(2)))))
        await running.controller.elect_leaders(ElectionType.PREFERRED, [FIRST])
        await running.settled()
        assert state(running).replicas == target
        assert not await running.store.exists(paths.REASSIGN_PARTITIONS)

    with_topic(tree, work, replicas=(0, 1))


async def request_by_tool(running: RunningController, *target: int) -> None:
    move = PartitionReassignment("t", 0, tuple(map(BrokerId, target)))
    request = encode(PartitionReassignments(partitions=(move,)))
    await running.store.create(paths.REASSIGN_PARTITIONS, request)


@pytest.mark.parametrize("how", ["deleted", "deleted by a mark", "cancelled"])
def test_a_tools_request_ends_with_the_topic_or_the_reassignment(tree: Tree, how: str) -> None:
    async def work(running: RunningController) -> None:
        await request_by_tool(running, 1, 2)
        await running.settled()
        assert await running.store.exists(paths.REASSIGN_PARTITIONS)
        if how == "deleted":
            await running.controller.delete_topics(["t"])
        elif how == "cancelled":
            await running.controller.reassign(FIRST, None)
        else:
            await running.store.create(paths.deleted_topic("t"))
        await running.settled()
        assert not await running.store.exists(paths.REASSIGN_PARTITIONS)

    with_topic(tree, work, replicas=(0, 1))


def test_a_request_that_was_not_begun_is_not_removed_with_another_reassignment(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await running.controller.reassign(FIRST, (0, 2))
        known = state(running)
        await request_by_tool(running, 1, 2)  # read after the operation that is queued now
        ready = wanted(known, (0, 1, 2))
        await running.controller.alter_isrs(known.leader, -1, [ready])
        await running.settled()
        assert set(state(running).replicas) >= {1, 2}, "the request was taken for complete"

    with_topic(tree, work, replicas=(0, 1))


@pytest.mark.parametrize("takes_place", [False, True])
def test_a_tools_reassignment_survives_a_lost_connection(tree: Tree, takes_place: bool) -> None:
    """It is not refused: its outcome is unknown, and the next controller reads it again."""

    async def work(running: RunningController) -> None:
        assert isinstance(running.store, LossyStore)
        running.store.loses, running.store.takes_place = paths.topic("t"), takes_place
        wanted = PartitionReassignments(partitions=(PartitionReassignment("t", 0, (BrokerId(2),)),))
        await running.store.create(paths.REASSIGN_PARTITIONS, encode(wanted))
        await until(lambda: running.controller.is_active and bool(state(running).adding_replicas))
        assert await running.store.exists(paths.REASSIGN_PARTITIONS)

    with_topic(tree, work, replicas=(1,))


@pytest.mark.parametrize("writes", range(5))
def test_a_half_written_operation_is_finished_once_the_disk_has_room(
    tree: Tree, writes: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with running_controller(tree, brokers=(0,)) as running:
            store = running.store
            assert isinstance(store, LossyStore)
            async with candidate(running):
                await running.controller.create_topics([TopicSpec("t"), TopicSpec("u")])
                store.room = writes
                with suppress(KafkaError):
                    await running.controller.delete_topics(["t"])
                with suppress(KafkaError):
                    await running.controller.create_topics([TopicSpec("v")])
                await asyncio.sleep(0.3)
                store.room = None
                await until(lambda: running.controller.is_active)
                await running.controller.delete_topics(["t"])
                await running.controller.create_topics([TopicSpec("t"), TopicSpec("v")])
                await running.settled()
                topics = running.controller.image.topics
                assert [topics[name].partitions[0].leader for name in "tuv"] == [0, 0, 0]

    asyncio.run(run())
    assert "Traceback" not in caplog.text
    assert caplog.text.count("the controller election failed") <= 1


def test_an_operation_of_an_earlier_epoch_does_not_end_the_next(tree: Tree) -> None:
    """It would resign in the new epoch, and its image would close the new controller's channels."""

    async def work(running: RunningController) -> None:
        controller, sent = running.controller, running.brokers.changes

        async def left_over(context: ControllerContext) -> None:
            controller.resign()
            for _ in range(20):  # the next epoch would begin meanwhile
                await asyncio.sleep(0)
            await context.announce(ImageDelta(), joined=[BrokerId(1)])

        before = len(sent)
        with pytest.raises(NotController):
            await controller._submit(left_over)
        await until(lambda: controller.is_active)
        await running.settled()
        assert controller.is_active
        assert {each.image.controller_epoch for each in sent[before:]} == {2}

    with_topic(tree, work)
