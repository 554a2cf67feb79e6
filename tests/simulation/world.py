"""A cluster, its clients and its faults, all from one seed."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random

from penstock.config.topic import TopicConfig
from penstock.controller import controller_election
from penstock.errors import KafkaError, ProtocolError
from penstock.metadata import paths
from penstock.metadata.errors import NoNode
from penstock.metadata.records import ConfigOverrides, TopicAssignment, decode
from penstock.metadata.tree import Tree
from penstock.replication.partition import Partition
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from simulation.broker import SimulatedBroker, SimulatedClock
from simulation.clients import Link, Producer, Reader
from simulation.history import History, Registrar, Shard, Violation, values
from simulation.loop import PROCESS, Process
from simulation.network import Network, NetworkedLoop
from simulation.workers import SimulatedWorker, StoreOwner
from simulation.zookeeper import ZooKeeper

SESSION_S = 1.5
SETTINGS = {
    "replica.lag.time.max.ms": "1500",
    "replica.lag.max.messages": "100",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "2000",
    "controller.socket.timeout.ms": "2000",
    "zookeeper.session.timeout.ms": "1500",
    "leader.imbalance.check.interval.seconds": "5",
    "controlled.shutdown.retry.backoff.ms": "500",
    "log.flush.scheduler.interval.ms": "2000",
    "log.index.size.max.bytes": "4096",
    "log.segment.delete.delay.ms": "1000",
    "log.roll.ms": "3000",
    "log.retention.check.interval.ms": "1000",
}
TOPIC = "kept"
"""No acknowledged record of this topic may be lost, whatever fails."""
ANEW = TopicPartition("anew", 0)
"""This topic is deleted and created again and again, with and without settings."""
LOOSE = TopicPartition("loose", 0)
"""This topic allows unclean elections. It may lose records, but nothing else may fail."""
SETTINGS_OF: dict[str, dict[str, str]] = {
    TOPIC: {"min.insync.replicas": "2"},
    ANEW.topic: {"min.insync.replicas": "2"},
    LOOSE.topic: {"unclean.leader.election.enable": "true"},
}
FLEETING = {"min.insync.replicas": "2", "retention.ms": "300", "segment.ms": "300"}
CHECK_STEPS = 64


@dataclass(frozen=True)
class Plan:
    """The size of a world, and the number of steps with faults."""

    seed: int
    steps: int = 10_000
    brokers: int = 4
    partitions: int = 2
    replicas: int = 3
    faults: tuple[str, ...] = ()
    """The faults to inject; empty means all."""
    workers: bool = False
    """All brokers are workers of one machine, without ZooKeeper."""
    heal_s: float = 60
    """How long the cluster may take to recover once all faults are repaired."""
    wide: bool = False
    """With the faults of `Nemesis.wide` as well, and consumers that read from followers."""


class World:
    """The whole simulation. `run` raises `Violation` if a promise is broken."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.chance = plan, Random(plan.seed)
        self.loop = NetworkedLoop()
        self.history = History(self.loop)
        self.network = self.loop.network = Network(self.loop, self.chance)
        clock = SimulatedClock(self.loop)
        self.zookeeper = ZooKeeper(self.network, Tree.in_memory(clock), SESSION_S)
        self.registrar = Registrar(self.history, self.zookeeper)
        self.owner = StoreOwner(self.network, self.zookeeper) if plan.workers else None
        broker = SimulatedWorker if plan.workers else SimulatedBroker
        self.brokers = [
            broker(number, self.network, self.zookeeper, SETTINGS) for number in range(plan.brokers)
        ]
        self.partitions = [TopicPartition(TOPIC, index) for index in range(plan.partitions)]
        self.everything = [*self.partitions, ANEW, LOOSE]
        self.is_over = False
        self.tasks: asyncio.TaskGroup
        self._main: asyncio.Task[None]
        self._known_epochs: dict[Process, int] = {}

    def run(self, nemesis: Callable[["World"], Awaitable[None]]) -> History:
        with self._logged():
            asyncio.set_event_loop(self.loop)
            try:
                self.loop.after_step = self._looked
                self.loop.run(self._live(nemesis))
            except* Violation:
                pass
            finally:
                asyncio.set_event_loop(None)
                self.loop.close()
        for problem in self.loop.problems:
            self.history.broken(problem)
        self.history.check()
        return self.history

    async def _live(self, nemesis: Callable[["World"], Awaitable[None]]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._main = task
        async with asyncio.TaskGroup() as self.tasks:
            expiring = self.tasks.create_task(self.zookeeper.expire())
            try:
                if self.owner is not None:
                    self.owner.start()
                for broker in self.brokers:
                    broker.start(self.tasks)
                await self._create_topics()
                async with asyncio.TaskGroup() as clients:
                    self._start_clients(clients)
                    await nemesis(self)
                    await self.heal()
                    await self._mended()
                    self.is_over = True
                await self._settle()
            except asyncio.CancelledError:
                if self.history.violation is None:
                    raise
            finally:
                self.is_over = True
                expiring.cancel()
                for broker in self.brokers:
                    if broker.is_up:
                        broker.kill()
        self.history.check()

    def _looked(self) -> None:
        """Cheap checks after every step."""
        loop, history = self.loop, self.history
        if self.registrar.vouched:
            vouched, self.registrar.vouched = self.registrar.vouched, []
            for where, broker in vouched:
                self._check_vouched(where, broker)
        if loop.steps % CHECK_STEPS == 0:
            self._check_brokers()
        if history.violation is not None and not self.is_over:
            self.is_over = True
            self._main.cancel()

    def _check_vouched(self, where: TopicPartition, broker: int) -> None:
        """A replica that is elected or joins an ISR has every record acknowledged by then."""
        if broker < 0 or not self.brokers[broker].is_up or where.topic not in self.topics():
            return
        partition = self.partition(broker, where)
        if partition is None or partition.topic_id != self.topic(where.topic).id():
            return  # it has not learned of the topic yet, or knows a former one of that name
        if partition.log.log_dir.failure is None:
            shard = Shard(partition.topic_id, where)
            self.history.check_log(shard, partition, f"broker {broker}, elected or in sync,")

    def _check_brokers(self) -> None:
        leaders: dict[tuple[Uuid, TopicPartition, int], int] = {}
        for broker in self.brokers:
            if not broker.is_up or broker.running is None:
                continue
            epoch = broker.running.services.cluster.image.controller_epoch
            known = self._known_epochs.get(broker.process, -1)
            if epoch < known:
                self.history.broken(
                    f"broker {broker.number} knew controller epoch {known}, and now {epoch}"
                )
            self._known_epochs[broker.process] = epoch
            for each in broker.running.services.replicas.partitions:
                if each.leads:
                    key = each.topic_id, each.topic_partition, each.leader_epoch
                    other = leaders.setdefault(key, broker.number)
                    if other != broker.number:
                        self.history.broken(
                            f"brokers {other} and {broker.number} lead {each.topic_partition}"
                            f" in epoch {each.leader_epoch}"
                        )

    def partition(self, broker: int, where: TopicPartition) -> Partition | None:
        running = self.brokers[broker].running
        return None if running is None else running.services.replicas.partitions.find(*where)

    # Clients.

    def _link(self, name: str) -> Link:
        return Link(name, self.plan.brokers, Random(self.chance.random()))

    def spawn(
        self, tasks: asyncio.TaskGroup, host: str, work: Awaitable[None]
    ) -> asyncio.Task[None]:
        async def main() -> None:
            await work

        task = tasks.create_task(main(), context=Process(host).context.copy())
        if asyncio.iscoroutine(work):  # which may never begin
            task.add_done_callback(lambda _: work.close())
        return task

    def _start_clients(self, tasks: asyncio.TaskGroup) -> None:
        def over() -> bool:
            return self.is_over

        for number, (acks, idempotent) in enumerate([(-1, False), (-1, True), (1, False)]):
            name = f"producer-{number}"
            producer = Producer(
                name, self._link(name), self.history, self.partitions, acks, idempotent
            )
            self.spawn(tasks, name, producer.run(over))
        for number, (where, promised) in enumerate([(ANEW, True), (LOOSE, False)], 3):
            name = f"producer-{number}"
            producer = Producer(
                name, self._link(name), self.history, [where], -1, False, promised=promised
            )
            self.spawn(tasks, name, producer.run(over))
        for where in self.partitions:
            name = f"reader-{where.partition}"
            reader = Reader(name, self._link(name), self.history, where)
            self.spawn(tasks, name, reader.run(over))
            if self.plan.wide:
                name = f"roamer-{where.partition}"
                roamer = Reader(name, self._link(name), self.history, where, roams=True)
                self.spawn(tasks, name, roamer.run(over))

    def creation(self, name: str, settings: dict[str, str] | None = None) -> CreateTopicsRequest:
        given = SETTINGS_OF.get(name, {}) if settings is None else settings
        topic = CreatableTopic(
            name=name,
            num_partitions=self.plan.partitions if name == TOPIC else 1,
            replication_factor=2 if name == LOOSE.topic else self.plan.replicas,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in given.items()],
        )
        return CreateTopicsRequest(topics=[topic], timeout_ms=1000)

    async def _create_topics(self) -> None:
        await self._created([TOPIC, ANEW.topic, LOOSE.topic], self.is_whole)

    async def _mended(self) -> None:
        """Deleted topics are gone and their names are free, as if nothing had happened."""
        try:
            async with asyncio.timeout(self.plan.heal_s):
                await self._created([ANEW.topic], self._is_mended)
        except TimeoutError:
            states = {str(each): self.state(each) for each in self.everything}
            self.history.broken(
                f"not mended {self.plan.heal_s:g} s after it was whole: topics {self.topics()},"
                f" deletions {self.zookeeper.tree.children(paths.DELETE_TOPICS)}, {states}"
            )

    async def _created(self, names: list[str], done: Callable[[], Awaitable[bool]]) -> None:
        link = self._link("admin")

        async def create() -> None:
            while not await done():
                for name in sorted(set(names) - self.topics()):
                    with suppress(KafkaError, ProtocolError, OSError):
                        await link.anyone(self.creation(name), CreateTopicsResponse)
                await asyncio.sleep(0.3)

        await self.spawn(self.tasks, "admin", create())

    def topics(self) -> set[str]:
        try:
            return set(self.zookeeper.tree.children(paths.TOPICS))
        except NoNode:
            return set()

    # The end.

    def state(self, where: TopicPartition) -> dict[str, object] | None:
        try:
            node = self.zookeeper.tree.get(paths.partition_state(where))
        except NoNode:
            return None
        found: dict[str, object] = json.loads(node.data or b"{}")
        return found

    def topic(self, name: str) -> TopicAssignment:
        return decode(TopicAssignment, self.zookeeper.tree.get(paths.topic(name)))

    def assignment(self, where: TopicPartition) -> tuple[list[int], bool]:
        """The replicas of a partition, and whether it is being reassigned."""
        node = self.zookeeper.tree.get(paths.topic(where.topic))
        topic = json.loads(node.data or b"{}")
        index = str(where.partition)
        moving = bool(topic["adding_replicas"].get(index) or topic["removing_replicas"].get(index))
        return topic["partitions"][index], moving

    async def is_whole(self) -> bool:
        """Every broker is up, and every replica is in sync."""
        return all(map(self._is_in_sync, self.partitions)) and all(
            each.is_up and each.running is not None for each in self.brokers
        )

    async def _is_mended(self) -> bool:
        return (
            await self.is_whole()
            and {ANEW.topic, LOOSE.topic} <= self.topics()
            and not self.zookeeper.tree.children(paths.DELETE_TOPICS)
            and all(map(self._is_in_sync, self.everything))
        )

    def _is_in_sync(self, where: TopicPartition) -> bool:
        state = self.state(where)
        if state is None or state["leader"] == -1:
            return False
        replicas, moving = self.assignment(where)
        isr = state["isr"]
        return not moving and isinstance(isr, list) and set(isr) == set(replicas)

    async def heal(self) -> None:
        """Repair all faults; then the cluster has to recover by itself."""
        network = self.network
        network.cut.clear()
        network.slow_s.clear()
        for broker in self.brokers:
            network.machine_is_back(broker.host)
            broker.resume()
            broker.disk.lacks_files = False
            if broker.is_up and (broker.disk.failed or broker.has_offline_directory):
                broker.kill()
        network.mend()
        if self.owner is not None and not self.owner.is_up:
            self.owner.start()
        for broker in self.brokers:
            if not broker.is_up:
                await asyncio.sleep(self.chance.uniform(0, 0.5))
                broker.start(self.tasks)
        self.history.note("healed")
        try:
            async with asyncio.timeout(self.plan.heal_s):
                while not await self.is_whole():
                    await asyncio.sleep(0.1)
                    for broker in self.brokers:
                        self._check_start(broker)
        except TimeoutError:
            states = {str(each): self.state(each) for each in self.partitions}
            self.history.broken(f"not whole {self.plan.heal_s:g} s after all was mended: {states}")

    def _check_start(self, broker: SimulatedBroker) -> None:
        if broker.error is not None:
            self.history.broken(f"broker {broker.number} ended: {broker.error!r}")
        elif not broker.is_up:
            broker.start(self.tasks)

    async def _settle(self) -> None:
        """No client writes any more, so all replicas become equal."""
        try:
            async with asyncio.timeout(self.plan.heal_s):
                while not self._is_settled():
                    await asyncio.sleep(0.1)
        except TimeoutError:
            strange = next(self._strange_images(), "replicas have other ends")
            self.history.broken(f"{strange}, a long time after the last write")
            return
        for where in self.everything:
            self._compare(where)

    def _replicas(self, where: TopicPartition) -> list[Partition]:
        found = [self.partition(number, where) for number in self.assignment(where)[0]]
        return [each for each in found if each is not None]

    def _is_settled(self) -> bool:
        for where in self.everything:
            replicas = self._replicas(where)
            leader = next((each for each in replicas if each.leads), None)
            if leader is None or len(replicas) < len(self.assignment(where)[0]):
                return False
            logs = [each.log for each in replicas]
            if len({offset for log in logs for offset in (log.end_offset, log.high_watermark)}) > 1:
                return False
            # A killed leader may have lost its log start offset after DeleteRecords; others not.
            first = leader.log.log_start_offset
            lags = any(log.log_start_offset < first for log in logs)
            if lags and leader.topic_id not in self.history.fleeting:
                return False
        return next(self._strange_images(), None) is None

    def _strange_images(self) -> Iterator[str]:
        """Brokers whose images have other topics or settings than the store."""
        tree = self.zookeeper.tree
        topics = {
            name: decode(TopicAssignment, tree.get(paths.topic(name))).id()
            for name in sorted(self.topics())
        }
        settings = {
            name: decode(ConfigOverrides, tree.get(paths.topic_config(name))).config
            for name in topics
        }
        for broker in self.brokers:
            assert broker.running is not None
            image = broker.running.services.cluster.image
            given = {name: dict(image.topic_configs.get(name, {})) for name in topics}
            if given != settings:
                yield f"broker {broker.number} has settings {given}, and they are {settings}"
            known = {name: image.topics[name].id for name in sorted(image.topics)}
            if known != topics:
                yield f"broker {broker.number} knows {list(known)}, there are {list(topics)}"
            for each in broker.running.services.replicas.partitions:
                where = each.topic_partition
                if (
                    each.topic_id != topics.get(where.topic)
                    or broker.number not in self.assignment(where)[0]
                ):
                    yield f"broker {broker.number} serves {where}, which it is not assigned"
                elif each.log.config.retention_ms != effective_retention(settings[where.topic]):
                    yield f"broker {broker.number} keeps {where} for another time"

    def _compare(self, where: TopicPartition) -> None:
        first: list[tuple[int, bytes]] | None = None
        replicas = self._replicas(where)
        start = max(each.log.log_start_offset for each in replicas)
        for each in replicas:
            found = [row for row in values(each, committed=True) if row[0] >= start]
            self.history.check_log(Shard(each.topic_id, where), each, "a replica, in the end,")
            if first is None:
                first = found
            elif found != first and each.topic_id not in self.history.fleeting:
                self.history.broken(f"replicas of {where} differ")
        reported = [value for _, value in first or [] if value.startswith(b"producer-1.")]
        if len(reported) != len(set(reported)):
            twice = sorted({each for each in reported if reported.count(each) > 1})
            self.history.broken(f"{where} has records of an idempotent producer twice: {twice}")

    @contextmanager
    def _logged(self) -> Iterator[None]:
        """Records the brokers' log lines in the history."""
        handler = Tracing(self.history)
        logger = logging.getLogger("penstock")
        level, propagate, last = logger.level, logger.propagate, logging.lastResort
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate, logging.lastResort = propagate, last


def effective_retention(settings: dict[str, str]) -> int:
    """The retention of a topic with these settings."""
    return int(settings.get("retention.ms", TopicConfig().retention_ms))


class Tracing(logging.Handler):
    """Log records as events. Those of dead processes are ignored."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history

    def emit(self, record: logging.LogRecord) -> None:
        process = PROCESS.get(None)
        if process is not None and process.is_alive:
            self._history.note(f"{process.host} {record.levelname} {record.getMessage()}")
            said = record.getMessage()
            if "below its high watermark" in record.msg and LOOSE.topic not in said:
                self._history.broken(f"{process.host}: {said}")
            if record.name == controller_election.__name__ and record.levelno >= logging.ERROR:
                self._history.broken(f"{process.host} could not become the controller: {said}")
            if record.exc_info:
                self._history.count(f"traceback: {record.getMessage()}: {record.exc_info[1]!r}")
