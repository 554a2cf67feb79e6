"""What stories do and look at."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from penstock.metadata import paths
from penstock.metadata.records import ElectedController, decode
from penstock.types import TopicPartition
from penstock.wire.messages.create_topics import CreatableReplicaAssignment, CreateTopicsResponse
from simulation.nemesis import Nemesis
from simulation.world import World

Story = Callable[[World], Awaitable[None]]


async def until(condition: Callable[[], bool], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def controller_of(world: World) -> int:
    return decode(ElectedController, world.zookeeper.tree.get(paths.CONTROLLER)).broker


async def asked(world: World, work: Awaitable[None]) -> None:
    """Run by an administrator, on a separate machine."""
    await world.spawn(world.tasks, "admin", work)


def led_elsewhere(world: World) -> TopicPartition:
    """A partition whose leader is not the controller."""
    controller = controller_of(world)
    return next(each for each in world.everything if leader_of(world, each) != controller)


def isr_of(world: World, topic_partition: TopicPartition) -> list[int]:
    state = world.state(topic_partition)
    return [] if state is None else list(state["isr"])  # type: ignore[call-overload]


def leader_of(world: World, topic_partition: TopicPartition) -> int:
    state = world.state(topic_partition)
    return -1 if state is None else int(str(state["leader"]))


async def made(
    world: World, name: str, settings: dict[str, str], replicas: list[int] | None = None
) -> None:
    """Create the topic, with retries until it exists."""
    nemesis = Nemesis(world)

    async def create() -> None:
        request = world.creation(name, settings)
        if replicas is not None:
            chosen = CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
            topic = replace(
                request.topics[0],
                num_partitions=-1,
                replication_factor=-1,
                assignments=[chosen],
            )
            request = replace(request, topics=[topic])
        while name not in world.topics():
            await nemesis._ask(request, CreateTopicsResponse)
            await asyncio.sleep(0.1)

    await asked(world, create())


async def deleted(world: World, name: str) -> None:
    nemesis = Nemesis(world)

    async def delete() -> None:
        while name in world.topics() and name not in deletions(world):
            await nemesis.delete(name)
            await asyncio.sleep(0.1)

    await asked(world, delete())
    await until(lambda: name not in world.topics(), 20)


async def moved(world: World, topic_partition: TopicPartition, target: list[int]) -> None:
    nemesis = Nemesis(world)

    async def move() -> None:
        while world.assignment(topic_partition) != (target, False):
            await nemesis.reassign(topic_partition, target)
            await asyncio.sleep(0.5)

    async with asyncio.timeout(20):
        await asked(world, move())


def deletions(world: World) -> list[str]:
    return world.zookeeper.tree.children(paths.DELETE_TOPICS)
