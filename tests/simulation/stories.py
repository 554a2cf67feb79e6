"""Stories of leaders, controllers and the store: one fault at the worst moment, and the required
outcome.

Random seeds meet such a moment once in many hours. Each story runs by itself, and again with the
rule broken that it tests; see `mutants.py`.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from penstock.client.address import Address
from penstock.client.connection import connect
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.store import Change, Create, DataChanged, Delete
from penstock.types import TopicPartition
from penstock.wire.messages.create_topics import CreateTopicsResponse
from simulation.broker import PORT, ROOT, SimulatedBroker
from simulation.clients import Producer
from simulation.nemesis import Nemesis
from simulation.steps import (
    Story,
    asked,
    controller_of,
    deleted,
    isr_of,
    leader_of,
    led_elsewhere,
    made,
    moved,
    until,
)
from simulation.world import ANEW, LOOSE, SETTINGS, SETTINGS_OF, TOPIC, World
from simulation.zookeeper import HOST as ZOOKEEPER


async def only_one_replica_remembers_that_records_were_deleted(world: World) -> None:
    """One replica stops cleanly. The others are killed before they have written their log start
    offset, and have the deleted records again.
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
    """The replica was in sync before. Its disk was lost, or is not mounted."""
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
    start_those_down(world)
    await asyncio.sleep(4)


async def all_are_killed_and_the_one_that_lost_power_comes_first(world: World) -> None:
    """The replica led, and its unflushed records are gone. The others still have them."""
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
    start_those_down(world)
    await asyncio.sleep(4)


async def the_first_to_come_back_lacks_records_and_is_restarted(world: World) -> None:
    """The replica waits for the others. After its next start nothing in its logs shows that they
    are short, or were created while it waited.
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
    start_those_down(world)
    await asyncio.sleep(4)


async def an_offset_flips_on_the_disk_of_a_killed_follower(world: World) -> None:
    """To a higher one, which the leader reaches meanwhile: the follower seems to lack nothing."""
    where = world.partitions[0]
    await until_whole(world)
    await asyncio.sleep(2)
    leader = leader_of(world, where)
    follower = follower_apart(world, where)
    producer = Producer("burst", world._link("burst"), world.history, [where], 1, idempotent=False)

    async def produce() -> None:
        for count in range(30):
            while not await producer._tried(where, [f"burst.{count}.0".encode()]):
                await asyncio.sleep(0.01)

    # In the leader epoch of the damaged batch: the next one begins when the death is noticed.
    world.network.cut.add((world.brokers[leader].host, follower.host))
    await asked(world, produce())
    follower.kill()
    world.network.cut.clear()
    world.network.mend()
    end = raised_last_offset(follower, where)
    partition = world.partition(leader, where)
    assert partition is not None
    assert partition.log.end_offset > end
    await asyncio.sleep(1)
    follower.start(world.tasks)
    await until_whole(world)


async def all_are_killed_and_the_one_whose_offset_flipped_comes_first(world: World) -> None:
    """The replica led. Its last batch is there, but not at its offset."""
    where = world.partitions[0]
    await until_whole(world)
    await asyncio.sleep(2)
    first = world.brokers[leader_of(world, where)]
    for broker in world.brokers:
        broker.kill()
    raised_last_offset(first, where)
    first.start(world.tasks)
    await asyncio.sleep(4)
    start_those_down(world)
    await asyncio.sleep(4)


async def a_follower_loses_power_as_a_segment_begins(world: World) -> None:
    """The name of the new segment reaches the disk, and the end of the one before does not."""
    where = world.partitions[0]
    await until_whole(world)
    follower = follower_apart(world, where)

    def has_rolled() -> bool:
        partition = world.partition(follower.number, where)
        return partition is not None and (
            partition.log.segments.active.base_offset > partition.log.recovery_point
        )

    await until(has_rolled, 20)
    follower.lose_power(lambda kind, count: count if kind == "names" else 0)
    await asyncio.sleep(1)
    world.network.machine_is_back(follower.host)
    follower.start(world.tasks)
    await until_whole(world)


def start_those_down(world: World) -> None:
    for broker in world.brokers:
        if not broker.is_up:
            broker.start(world.tasks)


def follower_apart(world: World, where: TopicPartition) -> SimulatedBroker:
    """An in-sync follower that is not the controller."""
    busy = {leader_of(world, where), controller_of(world)}
    return world.brokers[next(each for each in isr_of(world, where) if each not in busy)]


def raised_last_offset(broker: SimulatedBroker, where: TopicPartition) -> int:
    """Flip a bit, so that the last batch begins at a higher offset; returns the log's new end."""
    found = broker.disk.last_batch(where)
    assert found is not None
    header = found[2]
    bit = next(each for each in range(3, 64) if not header.base_offset >> each & 1)
    broker.disk.flip_last_offset(where, bit)
    return header.next_offset + (1 << bit)


async def a_leader_that_only_clients_reach_dies(world: World) -> None:
    """The leader wants to go on without its followers, and the controller does not learn of it."""
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


async def a_state_from_before_an_election_is_put_back(world: World) -> None:
    """It names a replica as in sync that lacks records, and all others of that time die."""
    where, controller = world.partitions[0], controller_of(world)
    behind, *others = [each for each in world.brokers if each.number != controller]
    path = paths.partition_state(where)
    await moved(world, where, [each.number for each in (*others, behind)])
    before = world.zookeeper.tree.get(path).data
    leader = world.brokers[leader_of(world, where)]
    leader.kill()
    await until(lambda: leader_of(world, where) not in {-1, leader.number}, 20)
    leader.start(world.tasks)
    await until(lambda: len(isr_of(world, where)) == len(world.assignment(where)[0]), 20)
    links = {(behind.host, each.host) for each in others}
    links |= {(second, first) for first, second in links}
    world.network.cut |= links
    await until(lambda: behind.number not in isr_of(world, where), 20)
    await asyncio.sleep(2)
    world.registrar.restore(path, before)
    for each in others:
        each.kill()
    await asyncio.sleep(3)
    world.network.cut -= links
    world.network.mend()


async def a_leader_expires_while_the_controller_has_no_store(world: World) -> None:
    """For less than the controller's session timeout. No watch reports what happened meanwhile."""
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


async def a_follower_lacks_files_for_a_while(world: World) -> None:
    """The follower cannot begin a segment. Its disk is not at fault: no controller is informed."""
    where = world.partitions[0]
    await asyncio.sleep(2)
    leader = leader_of(world, where)
    follower = world.brokers[next(each for each in world.assignment(where)[0] if each != leader)]
    follower.disk.lacks_files = True
    await until(lambda: follower.number not in isr_of(world, where), 20)
    follower.disk.lacks_files = False
    await asyncio.sleep(2)


async def a_former_leader_lacks_files_as_it_has_to_truncate(world: World) -> None:
    """Its directory stays online: nothing is begun that could not be finished."""
    await until_whole(world)
    controller = controller_of(world)
    where = next(each for each in world.partitions if leader_of(world, each) != controller)
    number = leader_of(world, where)
    broker = world.brokers[number]
    others = [*(each.host for each in world.brokers if each is not broker), ZOOKEEPER]
    links = {(broker.host, each) for each in others} | {(each, broker.host) for each in others}
    world.network.cut |= links
    await until(lambda: leader_of(world, where) not in {number, -1}, 20)
    await asyncio.sleep(0.5)
    broker.disk.lacks_files = True
    world.network.cut -= links
    world.network.mend()
    await asyncio.sleep(2)
    broker.disk.lacks_files = False
    await asyncio.sleep(1)
    if broker.has_offline_directory:
        world.history.broken(f"a directory of {broker.host} is offline")


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


async def a_control_request_arrives_late(world: World) -> None:
    """Over a connection that the controller has given up. The request deletes a topic that its
    second copy already deleted and that was created again since.
    """
    await deleted(world, ANEW.topic)
    controller = world.brokers[controller_of(world)]
    broker = world.brokers[(controller.number + 1) % world.plan.brokers]
    others = [each.number for each in world.brokers if each is not broker]
    replicas = [broker.number, *others[:2]]
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], replicas)
    await asyncio.sleep(1)
    link = controller.host, broker.host
    world.network.hold(link)
    await deleted(world, ANEW.topic)
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic], replicas)
    await asyncio.sleep(2)
    world.network.release(link)
    await asyncio.sleep(2)


async def a_controller_is_deposed_before_it_has_said_what_is_newer(world: World) -> None:
    """Another writer changed a state of which the leader knows an older version. The controller
    refuses the leader's ISR, and may not write the state in a new epoch. The next controller has
    nothing new for the leader.
    """
    where = led_elsewhere(world)
    path, leader = paths.partition_state(where), leader_of(world, where)
    follower = next(
        each for each in world.assignment(where)[0] if each not in {leader, controller_of(world)}
    )
    link = world.brokers[follower].host, world.brokers[leader].host
    world.network.cut.add(link)
    await until(lambda: follower not in isr_of(world, where), 20)
    tree = world.zookeeper.tree
    world.network.slow_s[link[1], ZOOKEEPER] = 0.1  # others are elected controller
    world.registrar.by_hand(tree.get(path))
    tree.apply(0, [[Delete(paths.CONTROLLER)]])
    await asyncio.sleep(1)
    world.zookeeper.denied.add(path)
    world.network.cut.discard(link)
    world.network.mend()
    await asyncio.sleep(2)
    tree.apply(0, [[Delete(paths.CONTROLLER)]])
    await asyncio.sleep(1)
    world.zookeeper.denied.clear()


async def a_follower_falls_behind_by_many_records(world: World) -> None:
    """And by little time: `replica.lag.max.messages` counts records."""
    where = world.partitions[0]
    await until(lambda: len(isr_of(world, where)) == world.plan.replicas, 20)
    leader = leader_of(world, where)
    others = {leader, controller_of(world)}
    follower = next(each for each in isr_of(world, where) if each not in others)
    link = world.brokers[follower].host, world.brokers[leader].host
    producer = Producer("burst", world._link("burst"), world.history, [where], 1, idempotent=False)
    count = 2 * int(SETTINGS["replica.lag.max.messages"])
    values = [f"burst.{each}".encode() for each in range(count)]

    async def produce() -> None:
        while not await producer._tried(where, values):
            await asyncio.sleep(0.01)

    world.network.cut.add(link)
    began = world.loop.time()
    await asked(world, produce())
    await until(lambda: follower not in isr_of(world, where), 20)
    took_s = world.loop.time() - began
    world.network.cut.discard(link)
    world.network.mend()
    if took_s > 1.1:  # ISRs are checked twice in `replica.lag.time.max.ms`
        world.history.broken(f"{where}: only time counted, {took_s:.1f} s")


async def an_unclean_election_is_allowed_at_last(world: World) -> None:
    """Of two available replicas, one was out of sync, and the other has lost power since. The
    latter has more records.
    """
    await deleted(world, LOOSE.topic)
    controller = controller_of(world)
    first, second, third = (each for each in world.brokers if each.number != controller)
    await made(world, LOOSE.topic, {}, [first.number, second.number, third.number])
    await until(lambda: len(isr_of(world, LOOSE)) == 3, 20)
    first.kill()
    await until(lambda: isr_of(world, LOOSE) == [second.number, third.number], 20)
    await asyncio.sleep(1)
    third.kill()
    second.lose_power(lambda _kind, _count: 0)
    for broker in (second, third):  # at once, so that both stay in the ISR
        world.zookeeper.end(broker.session)
    await until(lambda: leader_of(world, LOOSE) == -1, 20)
    world.network.machine_is_back(second.host)
    for broker in (first, second):
        broker.start(world.tasks)
        await until(lambda: broker.running is not None, 20)  # noqa: B023
    await asyncio.sleep(1)
    if leader_of(world, LOOSE) != -1:
        world.history.broken(f"{LOOSE} has a leader that may lack records")
    await asked(world, Nemesis(world).allow_unclean(LOOSE.topic))
    await until(lambda: leader_of(world, LOOSE) != -1, 20)
    if leader_of(world, LOOSE) != second.number:
        world.history.broken(f"{LOOSE} is led by a replica that was not in sync")
    third.start(world.tasks)


async def the_store_is_restored_and_lacks_a_topic(world: World) -> None:
    """The topic was created after the backup. Its name is used again, and its logs still exist."""
    await asyncio.sleep(2)
    kept = logs_on_disk(world)
    assert kept
    for broker in world.brokers:
        broker.kill()
    tree = world.zookeeper.tree
    for path in (
        paths.partition_state(ANEW),
        paths.partition(ANEW),
        paths.partitions(ANEW.topic),
        paths.topic(ANEW.topic),
        paths.topic_config(ANEW.topic),
    ):
        tree.apply(0, [[Delete(path)]])
    for broker in world.brokers:
        broker.start(world.tasks)
    await made(world, ANEW.topic, SETTINGS_OF[ANEW.topic])
    await until(lambda: len(isr_of(world, ANEW)) == world.plan.replicas, 20)
    await asyncio.sleep(3)
    if not kept <= logs_on_disk(world):
        world.history.broken(f"logs of the former {ANEW.topic} are gone")


async def the_store_is_restored_and_has_older_leader_epochs(world: World) -> None:
    """Leaders were elected, and wrote, after the backup. Later all brokers are killed again."""
    await until_whole(world)
    tree = world.zookeeper.tree
    backup = [tree.get(paths.partition_state(each)) for each in world.partitions]
    for _ in range(2):
        for number in {leader_of(world, each) for each in world.partitions}:
            broker = world.brokers[number]
            await asyncio.wait([world.tasks.create_task(broker.stop())])
            broker.start(world.tasks)
            await until_whole(world)
        await asyncio.sleep(1)
    for broker in world.brokers:
        broker.kill()
    for node in backup:
        world.registrar.restore(node.path, node.data)
    for _ in range(2):
        for broker in world.brokers:
            broker.start(world.tasks)
            await asyncio.sleep(0.5)
        await until_whole(world)
        await asyncio.sleep(2)
        for broker in world.brokers:
            broker.kill()


async def until_whole(world: World) -> None:
    try:
        async with asyncio.timeout(20):
            while not await world.is_whole():
                await asyncio.sleep(0.1)
    except TimeoutError:
        states = {str(each): world.state(each) for each in world.partitions}
        world.history.broken(f"not whole after 20 s: {states}")


def logs_on_disk(world: World) -> set[tuple[int, bytes]]:
    """The broker and the content of each segment of the recreated topic, strays included."""
    return {
        (broker.number, bytes(broker.disk._file(path).data))
        for broker in world.brokers
        for path in broker.disk.walk(ROOT)
        if path.suffix == ".log" and path.parent.name.startswith(f"{ANEW.topic}-")
    }


STORIES: tuple[Story, ...] = (
    only_one_replica_remembers_that_records_were_deleted,
    the_store_is_lost_as_a_leader_is_written,
    all_are_killed_and_one_comes_first_with_an_empty_disk,
    all_are_killed_and_the_one_that_lost_power_comes_first,
    the_first_to_come_back_lacks_records_and_is_restarted,
    an_offset_flips_on_the_disk_of_a_killed_follower,
    all_are_killed_and_the_one_whose_offset_flipped_comes_first,
    a_follower_loses_power_as_a_segment_begins,
    a_leader_that_only_clients_reach_dies,
    a_state_is_written_by_hand,
    a_state_from_before_an_election_is_put_back,
    a_leader_expires_while_the_controller_has_no_store,
    a_follower_lacks_files_for_a_while,
    a_former_leader_lacks_files_as_it_has_to_truncate,
    answers_come_while_a_controller_takes_over,
    a_node_is_malformed,
    the_only_replica_in_sync_stops_in_good_order,
    a_controller_stands_still_with_a_request,
    a_control_request_arrives_late,
    a_controller_is_deposed_before_it_has_said_what_is_newer,
    a_follower_falls_behind_by_many_records,
    an_unclean_election_is_allowed_at_last,
    the_store_is_restored_and_lacks_a_topic,
    the_store_is_restored_and_has_older_leader_epochs,
)
