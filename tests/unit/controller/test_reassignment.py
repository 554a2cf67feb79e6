"""Reassignments, and elections on request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from msgspec.structs import replace

from penstock.controller.isr_changes import IsrMember, RequestedIsr
from penstock.controller.topics import TopicSpec
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.records import TopicAssignment, decode, encode
from penstock.metadata.tree import Tree
from penstock.testing.controllers import RunningController, running_controller
from penstock.types import BrokerId, TopicPartition
from penstock.wire.enums import ElectionType

FIRST = TopicPartition("t", 0)


def with_topic(
    tree: Tree,
    replicas: tuple[int, ...],
    work: Callable[[RunningController], Awaitable[None]],
    brokers: Sequence[int] = (0, 1, 2),
) -> None:
    async def run() -> None:
        async with running_controller(tree, brokers=brokers) as running:
            if "t" not in running.controller.image.topics:
                new = TopicSpec("t", assignments=((0, replicas), (1, replicas)))
                await running.controller.create_topics([new])
            await work(running)

    asyncio.run(run())


def test_reordering_replicas_changes_the_preferred_leader(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await running.controller.reassign(FIRST, [1, 0])
        partition = running.controller.image.partition(FIRST)
        assert partition is not None
        assert (partition.replicas, partition.leader) == ((1, 0), 0)
        answers = await running.controller.elect_leaders(ElectionType.PREFERRED, [FIRST])
        assert answers == {FIRST: None}
        (change,) = running.last_change.partitions
        assert (change.state.leader, change.state.leader_epoch) == (1, 2)

    with_topic(tree, (0, 1), work)


def test_removed_replicas_are_stopped(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        await running.controller.reassign(FIRST, [1])
        (stopped,) = running.last_change.stopped
        assert (stopped.topic_partition, stopped.replicas, stopped.delete) == (FIRST, (0,), True)
        partition = running.controller.image.partition(FIRST)
        assert partition is not None
        assert (partition.replicas, partition.leader, partition.isr) == ((1,), 1, (1,))
        stored = decode(TopicAssignment, await running.store.get("/brokers/topics/t"))
        assert stored.partitions == {0: (1,), 1: (0, 1)}

    with_topic(tree, (0, 1), work)


def in_sync(
    running: RunningController, topic_partition: TopicPartition, isr: Sequence[int]
) -> RequestedIsr:
    """The leader's request once these replicas have caught up."""
    partition = running.controller.image.partition(topic_partition)
    assert partition is not None
    members = tuple(IsrMember(BrokerId(each)) for each in isr)
    return RequestedIsr(topic_partition, partition.leader_epoch, partition.partition_epoch, members)


def test_a_reassignment_completes_once_the_new_replica_is_in_sync(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        controller = running.controller
        await controller.reassign(FIRST, [2, 1])
        stored = decode(TopicAssignment, await running.store.get("/brokers/topics/t"))
        assert stored.partitions[0] == (2, 1, 0)
        assert (stored.adding_replicas, stored.removing_replicas) == ({0: (2,)}, {0: (0,)})
        (change,) = running.last_change.partitions
        assert [change.is_new_on(BrokerId(each)) for each in (0, 1, 2)] == [False, False, True]
        assert (change.state.leader, change.state.leader_epoch) == (0, 1)

        await controller.alter_isrs(BrokerId(0), -1, [in_sync(running, FIRST, (0, 1, 2))])
        partition = controller.image.partition(FIRST)
        assert partition is not None
        assert (partition.replicas, partition.isr, partition.leader) == ((2, 1), (1, 2), 2)
        stored = decode(TopicAssignment, await running.store.get("/brokers/topics/t"))
        assert (stored.partitions[0], stored.adding_replicas) == ((2, 1), {})
        (stopped,) = running.last_change.stopped
        assert (stopped.replicas, stopped.delete) == ((0,), True)

    with_topic(tree, (0, 1), work)


@pytest.mark.row("A139")
def test_a_reassignment_can_add_a_replica_without_removing_any(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        controller = running.controller
        await controller.reassign(FIRST, [0, 1, 2])
        await controller.alter_isrs(BrokerId(0), -1, [in_sync(running, FIRST, (0, 1, 2))])
        partition = controller.image.partition(FIRST)
        assert partition is not None
        assert (partition.replicas, partition.isr, partition.leader) == ((0, 1, 2), (0, 1, 2), 0)
        assert running.last_change.stopped == ()
        stored = decode(TopicAssignment, await running.store.get("/brokers/topics/t"))
        assert (stored.partitions[0], stored.adding_replicas) == ((0, 1, 2), {})

    with_topic(tree, (0, 1), work)


def test_a_cancelled_reassignment_stops_the_replicas_that_it_added(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        controller = running.controller
        await controller.reassign(FIRST, [2, 1])
        await controller.reassign(FIRST, None)
        partition = controller.image.partition(FIRST)
        assert partition is not None
        # As in Kafka, the original order is lost: the target came first in the assignment.
        assert (partition.replicas, partition.isr, partition.leader) == ((1, 0), (0, 1), 0)
        (stopped,) = running.last_change.stopped
        assert (stopped.replicas, stopped.delete) == ((2,), True)
        with pytest.raises(KafkaError):
            await controller.reassign(FIRST, None)

    with_topic(tree, (0, 1), work)


def test_the_next_controller_continues_a_reassignment(tree: Tree) -> None:
    async def begin(running: RunningController) -> None:
        await running.controller.reassign(FIRST, [2, 1])

    async def go_on(running: RunningController) -> None:
        # All brokers were down between the two controllers; the ISR has kept them.
        partition = running.controller.image.partition(FIRST)
        assert partition is not None
        assert partition.adding_replicas == (2,)
        wanted = in_sync(running, FIRST, (*partition.isr, 2))
        await running.controller.alter_isrs(partition.leader, -1, [wanted])
        partition = running.controller.image.partition(FIRST)
        assert partition is not None
        assert partition.replicas == (2, 1)

    with_topic(tree, (0, 1), begin)
    with_topic(tree, (0, 1), go_on)


def test_the_same_replicas_change_nothing(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        before = len(running.brokers.changes)
        await running.controller.reassign(FIRST, [0, 1])
        assert len(running.brokers.changes) == before

    with_topic(tree, (0, 1), work)


@pytest.mark.parametrize(
    ("topic_partition", "target", "factor_may_change", "code"),
    [
        (FIRST, None, True, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (FIRST, [], True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (FIRST, [7], True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (FIRST, [0, 0], True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (FIRST, [0], False, ErrorCode.INVALID_REPLICATION_FACTOR),
        (TopicPartition("t", 9), [0], True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicPartition("u", 0), [0], True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_invalid_reassignments_are_refused(
    tree: Tree,
    topic_partition: TopicPartition,
    target: list[int] | None,
    factor_may_change: bool,
    code: ErrorCode,
) -> None:
    async def work(running: RunningController) -> None:
        with pytest.raises(KafkaError) as refusal:
            await running.controller.reassign(
                topic_partition, target, factor_may_change=factor_may_change
            )
        assert refusal.value.code == code

    with_topic(tree, (0, 1), work)


def test_an_election_that_changes_nothing_is_reported_as_not_needed(tree: Tree) -> None:
    async def work(running: RunningController) -> None:
        unknown = TopicPartition("t", 9)
        for kind in ElectionType:
            answers = await running.controller.elect_leaders(kind, [FIRST, unknown])
            codes = {
                topic_partition: error and error.code for topic_partition, error in answers.items()
            }
            assert codes == {
                FIRST: ErrorCode.ELECTION_NOT_NEEDED,
                unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }

    with_topic(tree, (0,), work)


def test_an_unclean_election_elects_any_live_replica(tree: Tree) -> None:
    async def nothing(_: RunningController) -> None: ...

    async def shrink(running: RunningController) -> None:
        # Broker 1 is down and has left the ISR.
        partition = running.controller.image.partition(FIRST)
        assert partition is not None
        assert partition.isr == (2,)

    async def force(running: RunningController) -> None:
        partition = running.controller.image.partition(FIRST)
        assert partition is not None
        assert partition.leader == -1
        answers = await running.controller.elect_leaders(ElectionType.UNCLEAN, [FIRST])
        assert answers == {FIRST: None}
        (change,) = running.last_change.partitions
        assert (change.state.leader, change.state.isr, change.state.recovering) == (1, (1,), True)

    with_topic(tree, (2, 1), nothing)
    with_topic(tree, (2, 1), shrink, brokers=(0, 2))
    with_topic(tree, (2, 1), force, brokers=(0, 1))


def test_a_half_begun_reassignment_is_announced_in_a_new_epoch(tree: Tree) -> None:
    """The last controller wrote only the assignment, and brokers ignore a leader epoch
    that they know, so the leader would never let the new replica in.
    """

    async def work(running: RunningController) -> None:
        controller = running.controller
        before = controller.image.partition(FIRST)
        assert before is not None
        path = "/brokers/topics/t"
        stored = decode(TopicAssignment, await running.store.get(path))
        begun = replace(
            stored,
            partitions={**stored.partitions, 0: (2, 0, 1)},
            adding_replicas={0: (2,)},
            removing_replicas={0: (1,)},
        )
        await running.store.set(path, encode(begun))
        controller.resign()
        await running.store.delete("/controller")
        await controller.start()
        after = controller.image.partition(FIRST)
        assert after is not None
        assert (after.replicas, after.adding_replicas) == ((2, 0, 1), (2,))
        assert after.leader_epoch > before.leader_epoch
        await controller.alter_isrs(BrokerId(0), -1, [in_sync(running, FIRST, (0, 1, 2))])
        moved = controller.image.partition(FIRST)
        assert moved is not None
        assert (moved.replicas, moved.adding_replicas) == ((2, 0), ())

    with_topic(tree, (0, 1), work)
