"""Faults of all kinds, several at a time, chosen by the seed.

The faults stay within what replication promises to survive. Any number of processes may die, hang
or be cut off, because that destroys no data. A power loss and a flipped bit do, so they hit only
one machine at a time, while every replica is in sync, and the next waits until every replica is
again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress

from penstock.client.address import Address
from penstock.config.value import LONG_MAX
from penstock.errors import KafkaError, ProtocolError
from penstock.metadata import paths
from penstock.metadata.errors import NoNode
from penstock.metadata.records import ElectedController, TopicAssignment, decode
from penstock.metadata.store import Change, Create, DataChanged, Delete
from penstock.types import TopicPartition
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from penstock.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from penstock.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.wire.schema import Message
from simulation.broker import DIRECTORIES, PORT, SimulatedBroker
from simulation.history import Shard
from simulation.world import ANEW, FLEETING, LOOSE, SETTINGS_OF, TOPIC, World
from simulation.zookeeper import HOST as ZOOKEEPER

AT_ONCE = 3
MOST_PARTITIONS = 5
BROKER = 4
"""The type of a broker's settings; without a name, they are those of all brokers."""
ALONE = {"power", "power, elected", "flip"}


class Nemesis:
    """Injects faults into a world. `usual` are the faults with their frequencies."""

    def __init__(self, world: World) -> None:
        self._world, self._chance = world, world.chance
        self._busy: set[int] = set()
        self._link = world._link("admin")
        self._churned = 0
        self.usual: dict[str, tuple[int, Callable[[], Awaitable[None]]]] = {
            "kill": (6, self.kill),
            "pause": (4, self.pause),
            "long pause": (3, self.long_pause),
            "cut from brokers": (5, self.cut_from_brokers),
            "cut from the store": (4, self.cut_from_store),
            "cut one way": (5, self.cut_one_way),
            "slow": (4, self.slow),
            "connections": (5, self.break_connections),
            "store connection": (3, self.break_store_connection),
            "stop": (3, self.stop),
            "behind": (3, self.fall_behind),
            "expire": (3, self.expire),
            "move": (4, self.move),
            "move any": (3, self.move_any),
            "move logs": (3, self.move_logs),
            "prefer": (3, self.prefer),
            "churn": (3, self.churn),
            "directory": (2, self.fail_directory),
            "files": (2, self.lack_files),
            "power": (4, self.lose_power),
            "power, elected": (2, self.lose_power_as_it_is_elected),
            "flip": (2, self.flip),
            "kill all": (1, self.kill_all),
            "depose": (3, self.depose),
            "anew": (5, self.make_anew),
            "alter": (2, self.alter),
            "trim": (2, self.trim),
            "end of a move": (2, self.kill_as_a_move_ends),
            "malformed": (1, self.malform),
            "by hand": (1, self.write_by_hand),
            "deny": (2, self.deny),
            "late": (3, self.deliver_late),
        }
        self.wide: dict[str, tuple[int, Callable[[], Awaitable[None]]]] = {
            "grow": (2, self.grow),
            "grow anew": (2, self.grow_anew),
            "required": (2, self.require),
            "flush": (2, self.flush_each),
            "throttle": (3, self.throttle),
            "elect uncleanly": (2, self.elect_uncleanly),
            "restart and move": (2, self.restart_and_move),
        }
        """Combinations with features that rarely meet a fault."""
        if world.plan.wide:
            self.usual |= self.wide

    async def run(self) -> None:
        world, chance = self._world, self._chance
        wanted = world.plan.faults or tuple(self.usual)
        names = [each for each in self.usual if each in wanted]
        weights = [self.usual[each][0] for each in names]
        running: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as faults:
            while world.loop.steps < world.plan.steps:
                await asyncio.sleep(chance.uniform(0.05, 1.2))
                running = {each for each in running if not each.done()}
                if len(running) >= AT_ONCE:
                    continue
                (name,) = chance.choices(names, weights)
                world.history.count(f"fault: {name}")
                if name in ALONE:
                    if running:
                        await asyncio.wait(running)
                    await self.usual[name][1]()
                    continue
                running.add(world.spawn(faults, "admin", self.usual[name][1]()))

    def _some_broker(self, *, up: bool = True) -> SimulatedBroker | None:
        """A broker without any other fault."""
        found = [
            each
            for each in self._world.brokers
            if each.number not in self._busy and (not up or each.running is not None)
        ]
        return self._chance.choice(found) if found else None

    def _note(self, what: str) -> None:
        self._world.history.note(f"fault: {what}")

    async def _rest(self, low_s: float, high_s: float) -> None:
        await asyncio.sleep(self._chance.uniform(low_s, high_s))

    async def _until_up(self, broker: SimulatedBroker) -> None:
        """Start the broker, with retries."""
        world = self._world
        while broker.running is None:
            if not broker.is_up:
                if broker.error is not None:
                    self._note(f"{broker.host} did not start: {broker.error!r}")
                    broker.error = None
                broker.start(world.tasks)
            await asyncio.sleep(0.2)

    async def kill(self) -> None:
        broker = self._some_broker()
        if broker is not None:
            self._busy.add(broker.number)
            self._note(f"kill {broker.host}")
            broker.kill()
            await self._rest(0, 4)
            self._note(f"start {broker.host}")
            await self._until_up(broker)
            self._busy.discard(broker.number)

    async def kill_all(self) -> None:
        victims = [each for each in self._world.brokers if each.number not in self._busy]
        self._note("kill all")
        self._busy |= {each.number for each in victims}
        for broker in victims:
            if broker.is_up:
                broker.kill()
        await self._rest(0, 4)
        for broker in self._chance.sample(victims, len(victims)):
            await self._rest(0, 2)
            await self._until_up(broker)
            self._busy.discard(broker.number)

    async def stop(self) -> None:
        broker = self._some_broker()
        if broker is not None:
            self._busy.add(broker.number)
            self._note(f"stop {broker.host}")
            try:
                async with asyncio.timeout(20):
                    await broker.stop()
            except TimeoutError:
                self._note(f"{broker.host} does not stop, and is killed")
                broker.kill()
            await self._rest(0, 2)
            self._note(f"start {broker.host}")
            await self._until_up(broker)
            self._busy.discard(broker.number)

    async def pause(self, low_s: float = 0.05, high_s: float = 1.4) -> None:
        broker = self._some_broker()
        if broker is not None:
            self._busy.add(broker.number)
            self._note(f"pause {broker.host}")
            broker.pause()
            await self._rest(low_s, high_s)
            self._note(f"resume {broker.host}")
            broker.resume()
            self._busy.discard(broker.number)

    async def long_pause(self) -> None:
        """Pause until its session has expired unnoticed."""
        await self.pause(1.6, 5)

    async def _cut(self, links: set[tuple[str, str]], what: str) -> None:
        network = self._world.network
        self._note(f"cut {what}")
        links = links - network.cut
        network.cut |= links
        await self._rest(0.3, 5)
        self._note(f"mend {what}")
        network.cut -= links
        network.mend()

    async def cut_from_brokers(self) -> None:
        """The broker keeps its session, and reaches no other broker."""
        broker = self._some_broker(up=False)
        if broker is not None:
            others = [each.host for each in self._world.brokers if each is not broker]
            links = {(broker.host, each) for each in others} | {
                (each, broker.host) for each in others
            }
            await self._cut(links, f"{broker.host} from the other brokers")

    async def cut_from_store(self) -> None:
        """Other brokers still reach it. It loses its session, or only the answers of the store."""
        broker = self._some_broker(up=False)
        if broker is not None:
            links = {(broker.host, ZOOKEEPER), (ZOOKEEPER, broker.host)}
            if self._chance.random() < 0.4:
                links = {self._chance.choice(sorted(links))}
            await self._cut(links, f"{broker.host} from the store, {len(links)} ways")

    async def cut_one_way(self) -> None:
        first, second = self._chance.sample(self._world.brokers, 2)
        await self._cut({(first.host, second.host)}, f"{first.host} to {second.host}")

    async def slow(self) -> None:
        network, brokers = self._world.network, self._world.brokers
        first, second = self._chance.sample([each.host for each in brokers] + [ZOOKEEPER], 2)
        self._note(f"slow {first} to {second}")
        network.slow_s[first, second] = self._chance.uniform(0.02, 0.6)
        await self._rest(0.5, 4)
        network.slow_s.pop((first, second), None)

    async def break_connections(self) -> None:
        self._note("connections break")
        self._world.network.break_some(self._chance.uniform(0.1, 1))

    async def deliver_late(self) -> None:
        """Requests of one broker to another arrive after later ones over other connections."""
        network = self._world.network
        first, second = self._chance.sample([each.host for each in self._world.brokers], 2)
        self._note(f"connections from {first} to {second} deliver late")
        network.hold((first, second))
        await self._rest(1, 6)
        self._note(f"former connections from {first} to {second} deliver")
        network.release((first, second))

    async def break_store_connection(self) -> None:
        broker = self._some_broker()
        if broker is not None and broker.store is not None:
            self._note(f"{broker.host} loses its connection to the store")
            broker.store.lose_connection()

    async def fall_behind(self) -> None:
        """The ZooKeeper server of the broker lags behind the others for a while."""
        broker = self._some_broker()
        if broker is not None and broker.store is not None:
            store = broker.store
            self._note(f"the store's server of {broker.host} falls behind")
            store.fall_behind()
            await self._rest(0.01, 1.5)
            store.catch_up()

    async def expire(self) -> None:
        broker = self._some_broker()
        if broker is not None and broker.store is not None:
            self._note(f"the session of {broker.host} expires")
            self._world.zookeeper.end(broker.store.session_id)
            broker.store.lose_connection()

    async def depose(self) -> None:
        """An operator deletes `/controller`; the old controller learns of it late."""
        world, chance = self._world, self._chance
        try:
            node = world.zookeeper.tree.get(paths.CONTROLLER)
        except NoNode:
            return
        controller = f"broker-{decode(ElectedController, node).broker}"
        late_s = chance.choice([0.0, chance.uniform(0.05, 0.6)])
        self._note(f"depose {controller}, which hears of it {late_s:.3f} s late")
        slow = [(ZOOKEEPER, controller)]
        slow += [(controller, each.host) for each in world.brokers if chance.random() < 0.4]
        world.network.slow_s |= dict.fromkeys(slow, late_s)
        asked_s = late_s and chance.choice([0.0, 0.01, chance.uniform(0, late_s)])
        # It has a decision to make at that moment, or before it learns of the deletion.
        world.spawn(world.tasks, "admin", self.move(at=controller))
        await asyncio.sleep(asked_s)
        world.zookeeper.tree.apply(0, [[Delete(paths.CONTROLLER)]])
        if late_s:
            await asyncio.sleep(chance.uniform(0, late_s))
            await self.move(at=controller)
        await self._rest(0.5, 1.5)
        for link in slow:
            world.network.slow_s.pop(link, None)

    async def kill_as_a_move_ends(
        self, where: TopicPartition | None = None, target: list[int] | None = None
    ) -> None:
        """The controller dies between the two writes, with the replicas named by the first."""
        world = self._world
        where = where or self._chance.choice(world.partitions)
        ended = asyncio.Event()

        def looked(changes: Iterable[Change]) -> None:
            if DataChanged(paths.partition_state(where)) in changes and not ended.is_set():
                isr = self._half_ended(where)
                if isr:
                    ended.set()
                    for number in sorted({self._controller(), *isr}):
                        world.loop.call_soon(self._kill_at_once, number)

        world.zookeeper.tree.listeners.append(looked)
        if target is None:
            await self.move(where=where)
        else:
            await self.reassign(where, target)
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await ended.wait()
        world.zookeeper.tree.listeners.remove(looked)
        if ended.is_set():
            await self._rest(3, 6)
            for broker in world.brokers:
                if not broker.is_up and broker.number not in self._busy:
                    self._busy.add(broker.number)
                    await self._until_up(broker)
                    self._busy.discard(broker.number)

    def _half_ended(self, where: TopicPartition) -> list[int]:
        """The ISR, if it equals the target while the reassignment is still in progress."""
        world = self._world
        state, topic = world.state(where), world.topic(where.topic)
        removing = topic.removing_replicas.get(where.partition, ())
        isr = [] if state is None else list(state["isr"])  # type: ignore[call-overload]
        wanted = set(topic.partitions[where.partition]) - set(removing)
        return isr if removing and set(isr) == wanted else []

    def _controller(self) -> int:
        try:
            return decode(
                ElectedController, self._world.zookeeper.tree.get(paths.CONTROLLER)
            ).broker
        except NoNode:
            return -1

    def _kill_at_once(self, number: int) -> None:
        broker = self._world.brokers[number] if number >= 0 else None
        if broker is not None and broker.is_up and number not in self._busy:
            self._note(f"kill {broker.host} as a move ends; its session ends as well")
            broker.kill()
            self._world.zookeeper.end(broker.session)

    async def malform(self) -> None:
        """An operator creates a malformed node by hand, such as by a typing error in a shell."""
        tree, path = self._world.zookeeper.tree, paths.topic("odd")
        tree.apply(0, [[Create(path)]])
        await self._rest(1, 6)
        tree.apply(0, [[Delete(path)]])

    async def write_by_hand(self) -> None:
        """The version of a state node is newer than the controller knows."""
        world = self._world
        path = paths.partition_state(self._chance.choice(world.partitions))
        node = world.zookeeper.tree.get(path)
        if world.registrar.owns(node):
            self._note(f"{path} is written by hand")
            world.registrar.by_hand(node)

    async def deny(self) -> None:
        """An access control list protects a state node from the brokers for a while."""
        world, where = self._world, self._chance.choice(self._world.everything)
        path = paths.partition_state(where)
        self._note(f"{path} may not be written")
        world.zookeeper.denied.add(path)
        if where in world.partitions:  # there is something to write
            world.spawn(world.tasks, "admin", self.move(where=where))
        await self._rest(1, 6)
        self._note(f"{path} may be written again")
        world.zookeeper.denied.discard(path)

    async def fail_directory(self) -> None:
        """A log directory fails until the broker is restarted."""
        broker = self._some_broker()
        if broker is not None:
            self._busy.add(broker.number)
            path = self._chance.choice(DIRECTORIES)
            self._note(f"{path} of {broker.host} fails")
            broker.disk.failed.add(path)
            await self._rest(1, 5)
            if broker.is_up:
                broker.kill()
            await self._until_up(broker)
            self._busy.discard(broker.number)

    async def lack_files(self) -> None:
        """A broker may open no more files for a while."""
        broker = self._some_broker()
        if broker is not None:
            self._busy.add(broker.number)
            self._note(f"{broker.host} lacks files")
            broker.disk.lacks_files = True
            await self._rest(0.2, 3)
            self._note(f"{broker.host} has files again")
            broker.disk.lacks_files = False
            if broker.is_up and broker.has_offline_directory:  # until a restart
                broker.kill()
                await self._until_up(broker)
            self._busy.discard(broker.number)

    async def lose_power(self) -> None:
        world, chance = self._world, self._chance
        await self._until_whole("the last fault")
        first, *_ = world.assignment(chance.choice(world.partitions))[0]
        broker = world.brokers[chance.choice([first, chance.randrange(len(world.brokers))])]
        self._note(f"{broker.host} loses power")
        broker.lose_power(lambda _kind, count: chance.randint(0, count))
        if chance.random() < 0.5:
            broker.forget_session()
        if chance.random() < 0.5:
            world.spawn(world.tasks, "admin", self.prefer())
        await self._rest(0.1, chance.choice([0.5, 4]))
        await self._back(broker)

    async def lose_power_as_it_is_elected(self) -> None:
        """And come back before any other broker has noticed: the worst moment."""
        world, chance = self._world, self._chance
        await self._until_whole("the last fault")
        where = chance.choice(world.partitions)
        broker = world.brokers[world.assignment(where)[0][0]]
        assert broker.store is not None
        world.zookeeper.end(broker.store.session_id)  # so that another broker leads
        broker.store.lose_connection()
        await self._rest(0.3, 0.5)
        await self._until_whole("a session expired")
        self._note(f"{broker.host} loses power, and is elected")
        broker.lose_power(lambda _kind, count: chance.randint(0, count))
        broker.forget_session()
        world.spawn(world.tasks, "admin", self.prefer())
        await self._rest(0.05, 0.3)
        await self._back(broker)

    async def flip(self) -> None:
        """A bit of the last batch's offset flips on the disk of a killed broker. No CRC covers it,
        and no batch follows. Perhaps all brokers are killed, so that nobody writes meanwhile.
        """
        world, chance = self._world, self._chance
        await self._until_whole("the last fault")
        broker, bit = chance.choice(world.brokers), chance.randrange(10)
        killed = chance.choice([[broker], world.brokers])
        self._note(f"kill {len(killed)} brokers, and flip bit {bit} of offsets of {broker.host}")
        for each in killed:
            each.kill()
        for where in world.partitions:
            broker.disk.flip_last_offset(where, bit)
        for each in chance.sample(killed, len(killed)):
            await self._rest(0, chance.choice([0.5, 3]))
            await self._until_up(each)
        await self._until_whole("a bit flipped")

    async def _back(self, broker: SimulatedBroker) -> None:
        self._world.network.machine_is_back(broker.host)
        await self._rest(0, self._chance.choice([0.2, 1]))
        self._note(f"start {broker.host}")
        await self._until_up(broker)
        await self._until_whole("a loss of power")

    async def _until_whole(self, since: str) -> None:
        world = self._world
        try:
            async with asyncio.timeout(world.plan.heal_s):
                while not await world.is_whole():
                    await asyncio.sleep(0.1)
        except TimeoutError:
            states = {str(each): world.state(each) for each in world.partitions}
            world.history.broken(f"not whole {world.plan.heal_s:g} s after {since}: {states}")

    # Concurrent requests of administrators.

    async def _ask(
        self, request: Message, answer: type[Message], at: str | None = None
    ) -> Message | None:
        try:
            if at is not None:
                return await self._link.call(Address(at, PORT), request, answer)
            return await self._link.anyone(request, answer)
        except (KafkaError, ProtocolError, OSError):
            return None

    async def move(self, at: str | None = None, where: TopicPartition | None = None) -> None:
        world, chance = self._world, self._chance
        where = where or chance.choice(world.partitions)
        target = chance.sample(range(world.plan.brokers), world.plan.replicas)
        self._note(f"move {where} to {target}")
        await self.reassign(where, None if chance.random() < 0.2 else target, at)

    async def move_any(self) -> None:
        """Reassign a partition of any topic, with another number of replicas or the same."""
        world, chance = self._world, self._chance
        where = chance.choice(self._all_partitions())
        count = chance.randint(2, world.plan.brokers)  # a single replica must not lose power
        target = chance.sample(range(world.plan.brokers), count)
        self._note(f"move {where} to {target}")
        await self.reassign(where, None if chance.random() < 0.3 else target)

    def _all_partitions(self) -> list[TopicPartition]:
        world = self._world
        named = [(name, world.zookeeper.tree.get(paths.topic(name))) for name in world.topics()]
        return sorted(
            TopicPartition(name, index)
            for name, node in named
            if node.data is not None  # malformed
            for index in decode(TopicAssignment, node).partitions
        )

    async def move_logs(self) -> None:
        """Replicas move to another directory of their broker."""
        chance, broker = self._chance, self._some_broker()
        if broker is None:
            return
        topics: dict[str, list[int]] = {}
        for topic, index in self._all_partitions():
            if chance.random() < 0.5:
                topics.setdefault(topic, []).append(index)
        path = chance.choice(DIRECTORIES)
        self._note(f"{broker.host} moves {topics} to {path}")
        moved = AlterReplicaLogDir(
            path=path,
            topics=[
                AlterReplicaLogDirTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        await self._ask(
            AlterReplicaLogDirsRequest(dirs=[moved]), AlterReplicaLogDirsResponse, broker.host
        )

    async def reassign(
        self, where: TopicPartition, target: list[int] | None, at: str | None = None
    ) -> None:
        """Reassign to these brokers; None cancels a reassignment."""
        part = ReassignablePartition(partition_index=where.partition, replicas=target)
        await self._ask(
            AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name=where.topic, partitions=[part])]
            ),
            AlterPartitionReassignmentsResponse,
            at,
        )

    async def prefer(self) -> None:
        parts = TopicPartitions(topic=TOPIC, partitions=[e.partition for e in self._partitions()])
        await self._ask(
            ElectLeadersRequest(election_type=0, topic_partitions=[parts]), ElectLeadersResponse
        )

    def _partitions(self) -> list[TopicPartition]:
        return self._world.partitions

    async def churn(self) -> None:
        """A topic is created and deleted, perhaps at once, perhaps with a name used before."""
        name = f"churned-{self._churned % 3}"
        self._churned += 1
        await self.create(name)
        await self._rest(0, 2)
        await self.delete(name)

    async def delete(self, name: str) -> None:
        await self._ask(
            DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], topic_names=[name]),
            DeleteTopicsResponse,
        )

    async def create(self, name: str) -> None:
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=2)
        await self._ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)

    async def make_anew(self) -> None:
        """A topic is deleted, and created again under its name with other settings."""
        chance, name = self._chance, ANEW.topic
        self._note(f"{name} is deleted")
        await self.delete(name)
        settings = chance.choice([SETTINGS_OF[name], SETTINGS_OF[name], FLEETING])
        for _ in range(4):
            await self._rest(0, 2)
            if name not in self._world.topics():
                self._note(f"{name} is made anew with {settings}")
                await self._ask(self._world.creation(name, settings), CreateTopicsResponse)

    async def alter(self, name: str | None = None) -> None:
        """Alter a setting that does not affect the promises."""
        name = name or self._chance.choice([TOPIC, ANEW.topic, LOOSE.topic])
        value = str(self._chance.choice([4096, 8192, 1 << 20]))
        await self._set(name, "segment.bytes", value)

    async def allow_unclean(self, topic: str) -> None:
        await self._set(topic, "unclean.leader.election.enable", "true")

    async def _set(self, owner: str, name: str, value: str, resource_type: int = 2) -> bool:
        """Alter a setting of a topic or a broker; returns whether that succeeded."""
        change = AlterableConfig(name=name, config_operation=0, value=value)
        resource = AlterConfigsResource(
            resource_type=resource_type, resource_name=owner, configs=[change]
        )
        answer = await self._ask(
            IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse
        )
        return isinstance(answer, IncrementalAlterConfigsResponse) and all(
            each.error_code == 0 for each in answer.responses
        )

    # Faults of a wide plan.

    async def grow(self) -> None:
        """A topic gets one more partition, which is written to and must keep its records."""
        world = self._world
        count = len(world.partitions)
        if count < MOST_PARTITIONS:
            await self._grow_to(TOPIC, count + 1)
            where = TopicPartition(TOPIC, count)
            if where not in world.partitions and where in self._all_partitions():
                world.partitions.append(where)
                world.everything.append(where)

    async def grow_anew(self) -> None:
        """A topic grows while it is deleted and created again, its replicas move, or both."""
        await together(self._grow_to(ANEW.topic, 2), self.make_anew(), self.move_any())

    async def _grow_to(self, name: str, count: int) -> None:
        self._note(f"{name} is to have {count} partitions")
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        await self._ask(
            CreatePartitionsRequest(topics=[topic], timeout_ms=1000), CreatePartitionsResponse
        )

    async def require(self) -> None:
        """More in-sync replicas are required for a while, perhaps more than there are."""
        self._note("3 replicas in sync are required")
        await self._set(TOPIC, "min.insync.replicas", "3")
        await self._rest(0.3, 4)
        await self._until_set(TOPIC, "min.insync.replicas", "2")

    async def flush_each(self) -> None:
        """Each record is synced before it is acknowledged, for a while."""
        self._note("records are synced at once")
        await self._set(TOPIC, "flush.messages", "1")
        await self._rest(0.3, 4)
        await self._set(TOPIC, "flush.messages", str(LONG_MAX))

    async def throttle(self) -> None:
        """Replicas that are moved are copied slowly, or not at all."""
        world, chance = self._world, self._chance
        rate = chance.choice([0, 200, 2_000])
        rates = [f"{role}.replication.throttled.rate" for role in ("leader", "follower")]
        self._note(f"replicas are copied with {rate} bytes per second")
        for role in ("leader", "follower"):
            await self._set(TOPIC, f"{role}.replication.throttled.replicas", "*")
        for name in rates:
            await self._set("", name, str(rate), resource_type=BROKER)
        await self.move(where=chance.choice(world.partitions))
        await self._rest(0.5, 5)
        for name in rates:
            await self._until_set("", name, str(LONG_MAX), resource_type=BROKER)

    async def elect_uncleanly(self) -> None:
        """On request, in a topic that may lose records and in those that may not, which have a
        leader or an in-sync replica that comes back.
        """
        topic = TopicPartitions(topic=LOOSE.topic, partitions=[LOOSE.partition])
        await self._ask(
            ElectLeadersRequest(election_type=1, topic_partitions=[topic]), ElectLeadersResponse
        )

    async def restart_and_move(self) -> None:
        """A broker restarts while replicas are moved onto it, its topics are trimmed, and its
        leaders are elected.
        """
        world, broker = self._world, self._some_broker()
        if broker is None:
            return
        self._busy.add(broker.number)
        where = self._chance.choice(world.partitions)
        others = [each for each in range(world.plan.brokers) if each != broker.number]
        target = [broker.number, *self._chance.sample(others, world.plan.replicas - 1)]
        self._note(f"{broker.host} restarts while {where} is moved to {target}")
        broker.kill()
        await together(self.reassign(where, target), self.trim(where), self.prefer())
        await self._rest(0, 1)
        await self._until_up(broker)
        await together(self.move_logs(), self.prefer(), self.reassign(where, None))
        self._busy.discard(broker.number)

    async def _until_set(self, name: str, key: str, value: str, resource_type: int = 2) -> None:
        """Set it, with retries: the cluster cannot be whole before."""
        while not await self._set(name, key, value, resource_type=resource_type):
            await asyncio.sleep(0.3)

    async def trim(
        self, where: TopicPartition | None = None, *, within_a_batch: bool = False
    ) -> None:
        """Delete records up to some offset, often within a batch."""
        world, chance = self._world, self._chance
        where = where or chance.choice(world.partitions)
        try:
            found = await self._link.leader(where)
        except (KafkaError, ProtocolError, OSError):
            return
        if found is None:
            return
        address, topic_id = found
        shard = Shard(topic_id, where)
        kept = world.history.kept.get(shard)
        if kept is None or not kept.acked:
            return
        # A value ends with the record's number in its batch.
        inside = [each for each, value in kept.acked.items() if value.endswith(b".1")]
        offset = inside[-1] if within_a_batch and inside else chance.choice(list(kept.acked))
        world.history.trimmed[shard] = max(world.history.trimmed.get(shard, 0), offset)
        self._note(f"records of {where} are deleted up to {offset}")
        part = DeleteRecordsPartition(partition_index=where.partition, offset=offset)
        topic = DeleteRecordsTopic(name=where.topic, partitions=[part])
        with suppress(KafkaError, ProtocolError, OSError):
            await self._link.call(
                address,
                DeleteRecordsRequest(topics=[topic], timeout_ms=1000),
                DeleteRecordsResponse,
            )


async def together(*work: Coroutine[None, None, None]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for each in work:
            tasks.create_task(each)


async def everything(world: World) -> None:
    await Nemesis(world).run()
