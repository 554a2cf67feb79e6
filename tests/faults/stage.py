"""A ZooKeeper and three brokers with a topic, to which faults happen."""

import base64
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Protocol

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from faults.load import PARTITIONS, QUIET
from faults.witness import readers
from peers.penstock_cluster import PenstockCluster
from peers.process import wait_until
from peers.zookeeper import ZooKeeper
from peers.zookeeper_session import end_session
from penstock.coordinator.keys import partition_for

HEAL_S = 60
OFFSETS = "__consumer_offsets"
BROKERS = 3
_numbers = count()

SETTINGS: dict[str, object] = {
    "zookeeper.session.timeout.ms": 2000,
    "replica.lag.time.max.ms": 2000,
    "replica.fetch.backoff.ms": 100,
    "replica.socket.timeout.ms": 3000,
    "offsets.topic.num.partitions": 5,
    "transaction.state.log.num.partitions": 5,
    "log.roll.ms": 3000,
}
"""Settings of Penstock's brokers: quick failure detection, and small internal topics."""
QUICK_GROUPS: dict[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 300,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.share.min.heartbeat.interval.ms": 300,
    "group.share.heartbeat.interval.ms": 300,
    "share.coordinator.state.topic.num.partitions": 5,
}
"""Settings for groups that notice a dead member soon."""


class Brokers(Protocol):
    """Three brokers: Penstock's, or Kafka's on ZooKeeper."""

    @property
    def bootstrap(self) -> str: ...
    @property
    def pids(self) -> dict[int, int]: ...
    @property
    def running(self) -> set[int]: ...
    def data_dir(self, broker: int) -> Path: ...
    def start(self, *numbers: int) -> None: ...
    def stop(self, *numbers: int) -> None: ...
    def kill(self, *numbers: int) -> None: ...


class Stage:
    """Finds brokers by their present role, and causes faults."""

    def __init__(self, zookeeper: ZooKeeper, brokers: Brokers) -> None:
        self.zookeeper, self.brokers = zookeeper, brokers
        self.topic = ""
        self._admin = AdminClient({"bootstrap.servers": brokers.bootstrap, **QUIET})

    def new_topic(self) -> str:
        self.topic = f"faults-{os.getpid()}-{next(_numbers)}"
        new = NewTopic(self.topic, PARTITIONS, BROKERS, config={"min.insync.replicas": "2"})
        self._admin.create_topics([new])[self.topic].result(HEAL_S)
        return self.topic

    @property
    def leader(self) -> int:
        """The leader of the first partition."""
        found: list[int] = []

        def known() -> bool:
            found[:] = [leader for leader, _ in self._partitions() if leader >= 0][:1]
            return bool(found)

        wait_until(known, HEAL_S, "a leader")
        return found[0]

    @property
    def controller(self) -> int:
        found: list[int] = []

        def known() -> bool:
            try:
                found[:] = [self._admin.list_topics(timeout=5).controller_id]
            except KafkaException:
                return False
            return found[0] >= 0

        wait_until(known, HEAL_S, "a controller")
        return found[0]

    @property
    def coordinator(self) -> int:
        """The coordinator of the witnesses' group: the leader of its partition of the internal
        topic.
        """
        found: list[int] = []

        def known() -> bool:
            leaders = [leader for leader, _ in self._partitions(OFFSETS)]
            if leaders:
                found[:] = [leaders[partition_for(readers(self.topic), len(leaders))]]
            return bool(found) and found[0] >= 0

        wait_until(known, HEAL_S, "a coordinator")
        return found[0]

    @property
    def follower(self) -> int:
        """A broker that does not lead, and preferably is not the controller."""
        others = set(range(BROKERS)) - {self.leader}
        return min(others - {self.controller} or others)

    def wait_until_healed(self) -> None:
        """Waits until every broker runs, every partition has a leader, and all replicas are in
        sync.
        """
        wait_until(self._is_healed, HEAL_S, "every replica to be in sync again")

    def _is_healed(self) -> bool:
        partitions = self._partitions()
        return len(partitions) == PARTITIONS and all(
            leader >= 0 and len(isr) == BROKERS for leader, isr in partitions
        )

    def _partitions(self, topic: str | None = None) -> list[tuple[int, list[int]]]:
        topic = topic or self.topic
        try:
            found = self._admin.list_topics(topic, timeout=5).topics[topic].partitions
        except (KafkaException, KeyError):
            return []
        return [(each.leader, list(each.isrs)) for _, each in sorted(found.items())]

    @contextmanager
    def paused(self, pid: int) -> Iterator[None]:
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def wait_until_led_elsewhere(self, broker: int) -> None:
        def elsewhere() -> bool:
            leaders = [leader for leader, _ in self._partitions()]
            return len(leaders) == PARTITIONS and broker not in leaders

        wait_until(elsewhere, HEAL_S, f"broker {broker} to lead nothing")

    def wait_until_assigned(self, replicas: int) -> None:
        """Waits until each partition has this many replicas, whether or not they have copied it
        yet.
        """

        def assigned() -> bool:
            found = self._admin.list_topics(self.topic, timeout=5).topics[self.topic].partitions
            return all(len(each.replicas) == replicas for each in found.values())

        wait_until(assigned, HEAL_S, f"{replicas} replicas of each partition")

    def expire_session(self, broker: int) -> None:
        """Makes ZooKeeper end the broker's session, as if it had been silent for too long.

        Any client with the session's password may do that, and the broker stores it beside its
        data.
        """
        file = self.brokers.data_dir(broker).with_name("zookeeper-session.json")
        held = json.loads(file.read_bytes())
        password = base64.b64decode(held["password"])
        end_session(self.zookeeper.port(0), held["session_id"], password)


@contextmanager
def penstock_stage(settings: dict[str, object]) -> Iterator[Stage]:
    with (
        ZooKeeper(settings={"tickTime": 500}) as zookeeper,
        PenstockCluster(zookeeper.connect, settings=settings, apart=True) as brokers,
    ):
        yield Stage(zookeeper, brokers)


def replicas(brokers: Brokers, topic: str) -> list[list[bytes]]:
    """The records of each partition as each broker has them on disk, segments joined."""
    return [
        [_records(brokers.data_dir(broker) / f"{topic}-{index}") for broker in range(BROKERS)]
        for index in range(PARTITIONS)
    ]


def _records(directory: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(directory.glob("*.log")))


def wait_until_identical(brokers: Brokers, topic: str) -> None:
    """Waits until all replicas are equal byte for byte; nothing may be written meanwhile."""

    def identical() -> bool:
        return all(first and len({first, *rest}) == 1 for first, *rest in replicas(brokers, topic))

    wait_until(identical, HEAL_S, "the replicas to hold the same bytes")
