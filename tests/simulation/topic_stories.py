"""Stories of topics and replicas that are created, moved and deleted; see `stories.py`."""

import asyncio
from collections.abc import Iterable

from msgspec.structs import replace

from penstock.metadata import paths
from penstock.metadata.store import Change, DataChanged
from penstock.wire.messages.create_topics import CreateTopicsResponse
from simulation.broker import SimulatedBroker
from simulation.nemesis import Nemesis
from simulation.steps import (
    Story,
    asked,
    controller_of,
    deleted,
    deletions,
    isr_of,
    leader_of,
    made,
    moved,
    until,
)
from simulation.world import ANEW, FLEETING, SETTINGS_OF, TOPIC, World
from simulation.zookeeper import HOST as ZOOKEEPER


def image_settings(broker: SimulatedBroker, name: str) -> dict[str, str]:
    assert broker.running is not None
    return dict(broker.running.services.cluster.image.topic_configs.get(name, {}))


async def deleted_while_a_broker_stands_still(world: World) -> None:
    """Past its session, and without a replica: no controller informs it, then or later."""
    await deleted(world, ANEW.topic)
    spare = world.brokers[(controller_of(world) + 1) % world.plan.brokers]
    others = [each.number for each in world.brokers if each is not spare]
    await made(world, ANEW.topic, FLEETING, others)
    await made(world, "gone", {}, others)
    await until(lambda: image_settings(spare, ANEW.topic) == FLEETING, 20)
    spare.pause()
    await asyncio.sleep(4)
    await deleted(world, ANEW.topic)
    await deleted(world, "gone")
    spare.resume()
    await asyncio.sleep(3)
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], [spare.number, *others[:2]])
    await asyncio.sleep(4)


async def a_replica_is_moved_and_its_topic_made_anew_while_its_broker_is_down(
    world: World,
) -> None:
    """The broker comes back with the log of a deleted topic, and is to lead the new topic."""
    await deleted(world, ANEW.topic)
    broker = world.brokers[(controller_of(world) + 1) % world.plan.brokers]
    others = [each.number for each in world.brokers if each is not broker]
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], [broker.number, *others[:2]])
    await asyncio.sleep(4)
    broker.kill()
    await asyncio.sleep(3)
    await moved(world, ANEW, others)
    await deleted(world, ANEW.topic)
    broker.start(world.tasks)
    await asyncio.sleep(3)
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], [broker.number, *others[:2]])
    await asyncio.sleep(4)


async def a_replica_is_moved_while_its_broker_stands_still(world: World) -> None:
    """Past its session: no controller stops its replica, and it still acts as the leader."""
    where = world.partitions[0]
    replicas, _ = world.assignment(where)
    (spare,) = set(range(world.plan.brokers)) - set(replicas)
    number = leader_of(world, where)
    target = [spare if each == number else each for each in replicas]
    world.brokers[number].pause()
    await asyncio.sleep(3)
    await moved(world, where, target)
    world.brokers[number].resume()
    await asyncio.sleep(4)


async def a_replica_is_moved_and_its_topic_deleted_while_its_broker_stands_still(
    world: World,
) -> None:
    """The deletion does not wait for the broker, and the controller no longer names the topic.
    Until the broker has read the store, it considers the replica its own.
    """
    broker, others = await back_with_the_replica_of_a_deleted_topic(world)
    await asyncio.sleep(4)
    world.network.slow_s.clear()
    check_unserved(world, broker)
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], others)


async def a_topic_is_made_anew_as_a_broker_comes_back_with_its_replica(world: World) -> None:
    """After the controller's full set, and before the broker has found the topic deleted."""
    broker, others = await back_with_the_replica_of_a_deleted_topic(world)
    await until(lambda: str(broker.number) in world.zookeeper.tree.children(paths.BROKER_IDS), 20)
    await asyncio.sleep(0.1)
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], others)
    await asyncio.sleep(4)
    world.network.slow_s.clear()
    check_unserved(world, broker)


async def back_with_the_replica_of_a_deleted_topic(
    world: World,
) -> tuple[SimulatedBroker, list[int]]:
    """A broker stands still past its session while its replica is moved and the topic is deleted;
    it goes on, and reads the store slowly. The other brokers are returned too.
    """
    await deleted(world, ANEW.topic)
    broker = world.brokers[(controller_of(world) + 1) % world.plan.brokers]
    others = [each.number for each in world.brokers if each is not broker]
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], [broker.number, *others[:2]])
    await until(lambda: world.partition(broker.number, ANEW) is not None, 20)
    await asyncio.sleep(1)
    broker.pause()
    await asyncio.sleep(3)
    await moved(world, ANEW, others)
    await deleted(world, ANEW.topic)
    world.network.slow_s[ZOOKEEPER, broker.host] = 0.4
    broker.resume()
    return broker, others


def check_unserved(world: World, broker: SimulatedBroker) -> None:
    if world.partition(broker.number, ANEW) is not None:
        world.history.broken(f"{broker.host} serves {ANEW} of a deleted topic")


async def records_are_deleted_within_a_batch_and_a_replica_is_moved(world: World) -> None:
    """The new replica begins with a batch whose first records are deleted."""
    where = world.partitions[0]
    await asyncio.sleep(2)
    replicas, _ = world.assignment(where)
    (spare,) = set(range(world.plan.brokers)) - set(replicas)
    await asked(world, Nemesis(world).trim(where, within_a_batch=True))
    try:
        await moved(world, where, [*replicas[1:], spare])
    except TimeoutError:
        world.history.broken(f"{where} is not copied to {world.brokers[spare].host}")


async def a_setting_is_altered_while_a_deletion_waits(world: World) -> None:
    """The controller rereads all settings, including those of the topic that is being deleted."""
    controller = controller_of(world)
    number = next(each for each in world.assignment(ANEW)[0] if each != controller)
    await until(lambda: world.partition(number, ANEW) is not None, 20)
    world.brokers[number].kill()
    await asyncio.sleep(3)
    deleting = world.tasks.create_task(deleted(world, ANEW.topic))
    await until(lambda: ANEW.topic in deletions(world), 20)
    await asked(world, Nemesis(world).alter(TOPIC))
    await asyncio.sleep(2)
    world.brokers[number].start(world.tasks)
    await deleting
    try:
        async with asyncio.timeout(10):
            await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic])
    except TimeoutError:
        world.history.broken(f"{ANEW.topic} cannot be created again")


async def a_topic_is_made_while_a_broker_has_no_store(world: World) -> None:
    """For less than its session timeout."""
    await deleted(world, ANEW.topic)
    broker = world.brokers[(controller_of(world) + 1) % world.plan.brokers]
    others = [each.number for each in world.brokers if each is not broker]
    links = {(broker.host, ZOOKEEPER), (ZOOKEEPER, broker.host)}
    world.network.cut |= links
    assert broker.store is not None
    broker.store.lose_connection()
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], [*others[:2], broker.number])
    await asyncio.sleep(0.4)
    world.network.cut -= links
    world.network.mend()
    await asyncio.sleep(3)


async def a_topic_is_made_anew_while_a_server_of_the_store_is_behind(world: World) -> None:
    """Its broker learns of the topic before it can read the topic's settings there."""
    await deleted(world, ANEW.topic)
    broker = world.brokers[(controller_of(world) + 1) % world.plan.brokers]
    others = [each.number for each in world.brokers if each is not broker]
    await made(world, ANEW.topic, FLEETING, [broker.number, *others[:2]])
    await until(lambda: image_settings(broker, ANEW.topic) == FLEETING, 20)
    await asyncio.sleep(1)
    assert broker.store is not None
    broker.store.fall_behind()
    await deleted(world, ANEW.topic)
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], [broker.number, *others[:2]])
    await asyncio.sleep(1)
    broker.store.catch_up()
    await asyncio.sleep(4)


async def a_topic_is_made_while_a_broker_lacks_files(world: World) -> None:
    """The replica cannot create the log, and nothing else would bring it back."""
    await deleted(world, ANEW.topic)
    broker = world.brokers[(controller_of(world) + 1) % world.plan.brokers]
    others = [each.number for each in world.brokers if each is not broker]
    broker.disk.lacks_files = True
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], [broker.number, *others[:2]])
    await until(lambda: broker.number not in isr_of(world, ANEW), 20)
    broker.disk.lacks_files = False
    await asyncio.sleep(2)


async def a_topic_is_deleted_while_a_broker_lacks_files(world: World) -> None:
    """The broker renames the log's directory, and cannot open it to sync that."""
    await until(lambda: len(isr_of(world, ANEW)) == world.plan.replicas, 20)
    replicas, _ = world.assignment(ANEW)
    brokers = [world.brokers[each] for each in replicas[:2]]  # one at least is not the controller
    for broker in brokers:
        broker.disk.lacks_files = True
    nemesis = Nemesis(world)
    while ANEW.topic not in deletions(world):
        await asked(world, nemesis.delete(ANEW.topic))
    await asyncio.sleep(1)
    for broker in brokers:
        broker.disk.lacks_files = False
    try:
        await until(lambda: ANEW.topic not in world.topics(), 20)
    except TimeoutError:
        world.history.broken(f"the deletion of {ANEW.topic} does not end")


async def a_move_is_half_ended(world: World) -> None:
    """The controller and all target replicas die between the two writes that complete it."""
    where = world.partitions[0]
    replicas, _ = world.assignment(where)
    (spare,) = set(range(world.plan.brokers)) - set(replicas)
    survivor = next(each for each in replicas if each != controller_of(world))
    target = [spare if each == survivor else each for each in replicas]
    await asked(world, Nemesis(world).kill_as_a_move_ends(where, target))


async def the_second_write_that_ends_a_move_is_refused(world: World) -> None:
    """An access control list protects the topic's node for a while."""
    where = world.partitions[0]
    path, (replicas, _) = paths.topic(where.topic), world.assignment(where)
    (spare,) = set(range(world.plan.brokers)) - set(replicas)
    target = [*replicas[1:], spare]

    def looked(changes: Iterable[Change]) -> None:
        if DataChanged(path) in changes:  # the first write of the move
            world.zookeeper.denied.add(path)

    world.zookeeper.tree.listeners.append(looked)
    await asked(world, Nemesis(world).reassign(where, target))
    await until(lambda: set(isr_of(world, where)) == set(target), 20)
    await asyncio.sleep(1)
    world.zookeeper.tree.listeners.remove(looked)
    world.zookeeper.denied.clear()


async def very_many_replicas_are_deleted(world: World) -> None:
    """Other requests are served meanwhile."""
    request = world.creation("many")
    count = 200
    topic = replace(request.topics[0], num_partitions=count, replication_factor=1)

    async def create() -> None:
        while "many" not in world.topics():
            await Nemesis(world)._ask(replace(request, topics=[topic]), CreateTopicsResponse)
            await asyncio.sleep(0.1)

    def held() -> list[int]:
        return [
            0 if each.running is None else len(each.running.services.replicas.partitions)
            for each in world.brokers
        ]

    await asked(world, create())
    await until(lambda: sum(held()) >= count, 20)
    known, most, look = held(), 0, world.loop.after_step

    def looked() -> None:
        nonlocal known, most
        look()
        before, known = known, held()
        most = max(most, *(a - b for a, b in zip(before, known, strict=True)))

    world.loop.after_step = looked
    await deleted(world, "many")
    world.loop.after_step = look
    if most > 30:
        world.history.broken(f"{most} replicas were deleted in one turn of the loop")


TOPIC_STORIES: tuple[Story, ...] = (
    deleted_while_a_broker_stands_still,
    a_replica_is_moved_and_its_topic_made_anew_while_its_broker_is_down,
    a_replica_is_moved_while_its_broker_stands_still,
    a_replica_is_moved_and_its_topic_deleted_while_its_broker_stands_still,
    a_topic_is_made_anew_as_a_broker_comes_back_with_its_replica,
    records_are_deleted_within_a_batch_and_a_replica_is_moved,
    a_setting_is_altered_while_a_deletion_waits,
    a_topic_is_made_while_a_broker_has_no_store,
    a_topic_is_made_anew_while_a_server_of_the_store_is_behind,
    a_topic_is_made_while_a_broker_lacks_files,
    a_topic_is_deleted_while_a_broker_lacks_files,
    a_move_is_half_ended,
    the_second_write_that_ends_a_move_is_refused,
    very_many_replicas_are_deleted,
)
