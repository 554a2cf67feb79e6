"""Stories of a machine with two workers and their store; see `stories.py`."""

import asyncio
from collections.abc import Iterable
from functools import partial

from penstock.metadata import paths
from penstock.metadata.store import Change, DataChanged
from penstock.types import BrokerId, TopicPartition
from simulation.nemesis import Nemesis
from simulation.steps import Story, asked, leader_of, until
from simulation.world import SESSION_S, Plan, World

PLAN = Plan(1, 0, brokers=2, replicas=1, workers=True, heal_s=20)


def sessions(world: World) -> dict[str, int]:
    """The sessions of the registrations and of the controller."""
    nodes = [paths.CONTROLLER, *(paths.broker(BrokerId(each.number)) for each in world.brokers)]
    return {path: world.zookeeper.tree.get(path).ephemeral_owner for path in nodes}


def leaders(world: World) -> list[dict[str, object] | None]:
    return [world.state(each) for each in world.everything]


async def whole(world: World) -> None:
    async with asyncio.timeout(PLAN.heal_s):
        while not await world.is_whole():
            await asyncio.sleep(0.01)


async def the_owner_of_the_store_is_killed(world: World) -> None:
    """Sessions survive the owner: no leader changes, and requests to the store continue."""
    owner, before = world.owner, (sessions(world), leaders(world))
    assert owner is not None
    for _ in range(3):
        owner.kill()
        await asyncio.sleep(SESSION_S / 3)
        owner.start()
        await asyncio.sleep(2 * SESSION_S)
    after = sessions(world), leaders(world)
    if after != before:
        world.history.broken(f"the store's owner took more along: {before}, {after}")


async def a_worker_is_killed_and_its_partitions_come_back(world: World) -> None:
    """No timeout is waited for: the end of its connection ends its session."""
    for worker in world.brokers:
        led = [each for each in world.partitions if leader_of(world, each) == worker.number]
        assert led
        worker.kill()
        await until(partial(leaderless, world, led), SESSION_S / 3)
        worker.start(world.tasks)
        await whole(world)


def leaderless(world: World, partitions: Iterable[TopicPartition]) -> bool:
    return all(leader_of(world, each) == -1 for each in partitions)


async def the_machine_loses_power(world: World) -> None:
    """Both workers and the owner die together. Each comes back with its synced data."""
    for _ in range(2):
        await asyncio.sleep(2)
        await lose_power(world)


async def a_partition_has_moved_as_the_machine_loses_power(world: World) -> None:
    """The new leader has no new records yet. The former replica is about to be deleted."""
    assert world.owner is not None
    await asyncio.sleep(2)
    where, moved = world.partitions[0], asyncio.Event()
    target, path = 1 - leader_of(world, where), paths.partition_state(where)

    def looked(changes: Iterable[Change]) -> None:
        if DataChanged(path) in changes and leader_of(world, where) == target:
            moved.set()

    world.zookeeper.tree.listeners.append(looked)
    await asked(world, Nemesis(world).reassign(where, [target]))
    async with asyncio.timeout(PLAN.heal_s):
        await moved.wait()
    world.zookeeper.tree.listeners.remove(looked)
    await lose_power(world)


async def lose_power(world: World) -> None:
    """All at once; only synced data is left."""
    assert world.owner is not None
    world.owner.kill()
    for worker in world.brokers:
        worker.lose_power(lambda _kind, _count: 0)
    await asyncio.sleep(1)
    for worker in world.brokers:
        world.network.machine_is_back(worker.host)
    world.owner.start()
    for worker in world.brokers:
        worker.start(world.tasks)
    await whole(world)


WORKER_STORIES: tuple[Story, ...] = (
    the_owner_of_the_store_is_killed,
    a_worker_is_killed_and_its_partitions_come_back,
    the_machine_loses_power,
    a_partition_has_moved_as_the_machine_loses_power,
)
