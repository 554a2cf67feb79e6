"""Topic `t` of a running controller, whose brokers die and come back as a test decides."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.controller.broker_registration import register
from penstock.controller.isr_changes import IsrMember, RequestedIsr
from penstock.controller.topics import TopicSpec
from penstock.metadata import paths
from penstock.metadata.image import PartitionRegistration
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.tree import Tree
from penstock.testing.controllers import RunningController, running_controller
from penstock.types import BrokerId, TopicPartition

FIRST = TopicPartition("t", 0)
SECOND = TopicPartition("t", 1)


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
