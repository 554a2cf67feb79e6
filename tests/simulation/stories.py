"""Stories: one fault at the worst moment, and what must come of it.

Seeds meet such a moment once in many hours. Each story runs by itself, and again with the rule
broken that it tests; see `mutants.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from msgspec.structs import replace

from penstock.client.address import Address
from penstock.client.connection import connect
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.records import ElectedController, decode
from penstock.metadata.store import Change, Create, DataChanged, Delete
from penstock.types import TopicPartition
from penstock.wire.messages.create_topics import CreatableReplicaAssignment, CreateTopicsResponse
from simulation.broker import PORT, SimulatedBroker
from simulation.nemesis import Nemesis
from simulation.world import ANEW, FLEETING, LOOSE, SETTINGS_OF, TOPIC, World
from simulation.zookeeper import HOST as ZOOKEEPER

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


def isr_of(world: World, where: TopicPartition) -> list[int]:
    state = world.state(where)
    return [] if state is None else list(state["isr"])  # type: ignore[call-overload]


def leader_of(world: World, where: TopicPartition) -> int:
    state = world.state(where)
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


async def moved(world: World, where: TopicPartition, target: list[int]) -> None:
    nemesis = Nemesis(world)

    async def move() -> None:
        while world.assignment(where) != (target, False):
            await nemesis.reassign(where, target)
            await asyncio.sleep(0.5)

    async with asyncio.timeout(20):
        await asked(world, move())


def deletions(world: World) -> list[str]:
    return world.zookeeper.tree.children(paths.DELETE_TOPICS)


def image_settings(broker: SimulatedBroker, name: str) -> dict[str, str]:
    assert broker.running is not None
    return dict(broker.running.services.cluster.image.topic_configs.get(name, {}))


async def deleted_while_a_broker_stands_still(world: World) -> None:
    """Past its session, and without a replica: no controller tells it, then or later."""
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


async def only_one_replica_remembers_that_records_were_deleted(world: World) -> None:
    """It stops cleanly. The others are killed before they have written their log start offset, and
    have the deleted records again.
    """
    where = world.partitions[0]
    leader = leader_of(world, where)
    stopped = next(each for each in world.assignment(where)[0] if each != leader)
    await asyncio.sleep(2)
    await asked(world, Nemesis(world).trim(where))
    await asyncio.sleep(0.5)
    await asyncio.wait([world.tasks.create_task(world.brokers[stopped].stop())])
    for broker in world.brokers:
        if broker.is_up:
            broker.kill()
    await asyncio.sleep(1)


async def the_store_is_lost_as_a_leader_is_written(world: World) -> None:
    """The write succeeds, and the controller does not learn of it."""
    where, controller = led_elsewhere(world), world.brokers[controller_of(world)]
    path, lost = paths.partition_state(where), asyncio.Event()

    def looked(changes: Iterable[Change]) -> None:
        if DataChanged(path) in changes and not lost.is_set():
            lost.set()
            assert controller.store is not None
            controller.store.lose_connection()

    world.zookeeper.tree.listeners.append(looked)
    world.brokers[leader_of(world, where)].kill()
    await until(lost.is_set, 20)
    world.zookeeper.tree.listeners.remove(looked)
    await asyncio.sleep(2)
    leader = leader_of(world, where)
    partition = world.partition(leader, where)
    if partition is None or not partition.leads:
        world.history.broken(f"{where}: broker {leader} does not know that it leads")


async def all_are_killed_and_one_comes_first_with_an_empty_disk(world: World) -> None:
    """It was in sync before. Its disk was lost, or is not mounted."""
    where = world.partitions[0]
    replicas, _ = world.assignment(where)
    await asyncio.sleep(3)
    await until(lambda: len(isr_of(world, where)) == len(replicas), 20)
    for broker in world.brokers:
        broker.kill()
    first = world.brokers[replicas[0]]
    first.replace_disk()
    first.start(world.tasks)
    await asyncio.sleep(10)
    for broker in world.brokers:
        if not broker.is_up:
            broker.start(world.tasks)
    await asyncio.sleep(4)


async def all_are_killed_and_the_one_that_lost_power_comes_first(world: World) -> None:
    """It led, and what it had not flushed is gone. The others still have it."""
    where = world.partitions[0]
    replicas, _ = world.assignment(where)
    await asyncio.sleep(3)
    await until(lambda: len(isr_of(world, where)) == len(replicas), 20)
    first = world.brokers[leader_of(world, where)]
    for broker in world.brokers:
        if broker is not first:
            broker.kill()
    first.lose_power(lambda _kind, _count: 0)
    world.network.machine_is_back(first.host)
    first.start(world.tasks)
    await asyncio.sleep(4)
    for broker in world.brokers:
        if not broker.is_up:
            broker.start(world.tasks)
    await asyncio.sleep(4)


async def the_first_to_come_back_lacks_records_and_is_restarted(world: World) -> None:
    """It waits for the others. After its next start nothing in its logs shows that they are short,
    or were created while it waited.
    """
    where = world.partitions[0]
    replicas, _ = world.assignment(where)
    await asyncio.sleep(3)
    await until(lambda: len(isr_of(world, where)) == len(replicas), 20)
    first = world.brokers[leader_of(world, where)]
    for broker in world.brokers:
        broker.kill()
    first.replace_disk()
    first.start(world.tasks)
    await asyncio.sleep(6)
    await asyncio.wait([world.tasks.create_task(first.stop())])
    first.start(world.tasks)
    await asyncio.sleep(6)
    first.kill()
    first.start(world.tasks)
    await asyncio.sleep(6)
    for broker in world.brokers:
        if not broker.is_up:
            broker.start(world.tasks)
    await asyncio.sleep(4)


async def a_leader_that_only_clients_reach_dies(world: World) -> None:
    """It wants to go on without its followers, and the controller does not learn of it."""
    where = led_elsewhere(world)
    leader = world.brokers[leader_of(world, where)]
    others = [each.host for each in world.brokers if each is not leader]
    links = {(leader.host, each) for each in others} | {(each, leader.host) for each in others}
    world.network.cut |= links
    await asyncio.sleep(4)  # longer than replica.lag.time.max.ms
    leader.kill()
    world.network.cut -= links
    world.network.mend()
    await asyncio.sleep(4)


async def a_state_is_written_by_hand(world: World) -> None:
    where = led_elsewhere(world)
    node = world.zookeeper.tree.get(paths.partition_state(where))
    assert world.registrar.owns(node)
    world.registrar.by_hand(node)
    leader = leader_of(world, where)
    world.brokers[leader].kill()
    await asyncio.sleep(4)
    if leader_of(world, where) == leader:
        world.history.broken(f"{where} is led by broker {leader}, which is dead")


async def a_leader_expires_while_the_controller_has_no_store(world: World) -> None:
    """For less than the controller's session timeout. No watch tells it what happened meanwhile."""
    # Producers have their ids by then: a request to a controller without its store would make it
    # resign, and the next one reads everything anyway.
    await asyncio.sleep(3)
    where, controller = led_elsewhere(world), world.brokers[controller_of(world)]
    leader = leader_of(world, where)
    links = {(controller.host, ZOOKEEPER), (ZOOKEEPER, controller.host)}
    world.network.cut |= links
    assert controller.store is not None
    controller.store.lose_connection()
    await asyncio.sleep(0.1)
    broker = world.brokers[leader]
    assert broker.store is not None
    broker.pause()  # its connections stay open
    world.zookeeper.end(broker.store.session_id)
    await asyncio.sleep(0.3)
    world.network.cut -= links
    world.network.mend()
    await asyncio.sleep(4)
    if leader_of(world, where) == leader:
        world.history.broken(f"{where} is led by broker {leader}, which is not registered")
    broker.resume()


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
    """Its broker is told of the topic before it can read the topic's settings there."""
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


async def a_follower_lacks_files_for_a_while(world: World) -> None:
    """It cannot begin a segment. Its disk is not at fault, so that no controller is told."""
    where = world.partitions[0]
    await asyncio.sleep(2)
    leader = leader_of(world, where)
    follower = world.brokers[next(each for each in world.assignment(where)[0] if each != leader)]
    follower.disk.lacks_files = True
    await until(lambda: follower.number not in isr_of(world, where), 20)
    follower.disk.lacks_files = False
    await asyncio.sleep(2)


async def a_topic_is_made_while_a_broker_lacks_files(world: World) -> None:
    """It cannot make the log, and nothing else brings the replica back."""
    await deleted(world, ANEW.topic)
    broker = world.brokers[(controller_of(world) + 1) % world.plan.brokers]
    others = [each.number for each in world.brokers if each is not broker]
    broker.disk.lacks_files = True
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], [broker.number, *others[:2]])
    await until(lambda: broker.number not in isr_of(world, ANEW), 20)
    broker.disk.lacks_files = False
    await asyncio.sleep(2)


async def a_move_is_half_ended(world: World) -> None:
    """The controller and all target replicas die between the two writes that complete it."""
    where = world.partitions[0]
    replicas, _ = world.assignment(where)
    (spare,) = set(range(world.plan.brokers)) - set(replicas)
    survivor = next(each for each in replicas if each != controller_of(world))
    target = [spare if each == survivor else each for each in replicas]
    await asked(world, Nemesis(world).kill_as_a_move_ends(where, target))


async def answers_come_while_a_controller_takes_over(world: World) -> None:
    """A deletion is requested as the controller changes; brokers are faster than the store."""
    await until(lambda: len(isr_of(world, ANEW)) == world.plan.replicas, 20)
    slow = {(each.host, ZOOKEEPER): 0.1 for each in world.brokers}
    world.network.slow_s |= slow
    world.zookeeper.tree.apply(
        0, [[Create(paths.deleted_topic(ANEW.topic)), Delete(paths.CONTROLLER)]]
    )
    await asyncio.sleep(3)


async def a_node_is_malformed(world: World) -> None:
    """One has no content, another the id of a broker that no request can carry."""
    tree, odd, huge = world.zookeeper.tree, paths.topic("odd"), paths.topic("huge")
    content = b'{"version":1,"partitions":{"0":[0,2147483648]}}'
    tree.apply(0, [[Create(odd), Create(huge, content), Delete(paths.CONTROLLER)]])
    await asyncio.sleep(3)
    world.brokers[leader_of(world, world.partitions[0])].kill()
    await asyncio.sleep(3)
    tree.apply(0, [[Delete(odd), Delete(huge)]])


async def the_only_replica_in_sync_stops_in_good_order(world: World) -> None:
    """Another replica, which could be elected uncleanly, is about to catch up."""
    leader = leader_of(world, LOOSE)
    (follower,) = set(world.assignment(LOOSE)[0]) - {leader}
    first, second = world.brokers[leader], world.brokers[follower]
    links = {(first.host, second.host), (second.host, first.host)}
    world.network.cut |= links
    await until(lambda: isr_of(world, LOOSE) == [leader], 20)
    await asyncio.sleep(1)
    world.network.cut -= links
    world.network.mend()
    await asyncio.wait([world.tasks.create_task(first.stop())])
    state = decode_state(world)
    if state.get("leader_recovery_state") or state["leader"] != follower:
        world.history.broken(f"{LOOSE} has an unclean leader: {state}")


def decode_state(world: World) -> dict[str, object]:
    state = world.state(LOOSE)
    assert state is not None
    return state


async def a_controller_stands_still_with_a_request(world: World) -> None:
    """Another broker soon becomes the controller, and gets the request."""
    await deleted(world, ANEW.topic)
    controller = world.brokers[controller_of(world)]
    other = world.brokers[(controller.number + 1) % world.plan.brokers]

    async def create() -> None:
        connection = await connect(Address(other.host, PORT), client_id="admin")
        # An existing topic, so that the other broker is connected to the controller.
        known = world.creation(TOPIC)
        await connection.call(known, CreateTopicsResponse, timeout_ms=60_000)
        controller.pause()
        began = world.loop.time()
        wanted = world.creation(ANEW.topic)
        with suppress(KafkaError):  # a broker that gave up closes the connection
            await connection.call(wanted, CreateTopicsResponse, timeout_ms=60_000)
        took_s = world.loop.time() - began
        connection.abort()
        if took_s > 10:
            world.history.broken(f"a request waited {took_s:.0f} s for one that stood still")

    await asked(world, create())
    controller.resume()


STORIES: tuple[Story, ...] = (
    deleted_while_a_broker_stands_still,
    a_replica_is_moved_and_its_topic_made_anew_while_its_broker_is_down,
    a_replica_is_moved_while_its_broker_stands_still,
    only_one_replica_remembers_that_records_were_deleted,
    the_store_is_lost_as_a_leader_is_written,
    all_are_killed_and_one_comes_first_with_an_empty_disk,
    all_are_killed_and_the_one_that_lost_power_comes_first,
    the_first_to_come_back_lacks_records_and_is_restarted,
    a_leader_that_only_clients_reach_dies,
    a_state_is_written_by_hand,
    a_leader_expires_while_the_controller_has_no_store,
    a_topic_is_made_while_a_broker_has_no_store,
    a_topic_is_made_anew_while_a_server_of_the_store_is_behind,
    a_follower_lacks_files_for_a_while,
    a_topic_is_made_while_a_broker_lacks_files,
    a_move_is_half_ended,
    answers_come_while_a_controller_takes_over,
    a_node_is_malformed,
    the_only_replica_in_sync_stops_in_good_order,
    a_controller_stands_still_with_a_request,
)
