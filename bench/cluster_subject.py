"""A cluster of three brokers under measurement, and helpers for its clients."""

import re
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.kafka import KafkaCluster
from peers.penstock_cluster import PenstockCluster
from peers.process import PeerError, wait_until
from peers.tools import tool
from peers.zookeeper import ZooKeeper

CLIENT: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
}
"""Short backoffs, so that the brokers' time is measured and not the client's."""

TICK_MS = 500
"""ZooKeeper's tickTime, as in `penstock cluster start`: ZooKeeper expires sessions at ticks."""

WAIT_S = 120
_numbers = count()


class Brokers(Protocol):
    @property
    def bootstrap(self) -> str: ...
    @property
    def pids(self) -> dict[int, int]: ...
    def start(self, *numbers: int) -> None: ...
    def stop(self, *numbers: int) -> None: ...
    def kill(self, *numbers: int) -> None: ...


class Subject:
    """A cluster with default settings that runs until the stack unwinds."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        self.name = name
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        began_s = time.monotonic()
        if name == "Penstock":
            zookeeper = stack.enter_context(ZooKeeper(settings={"tickTime": TICK_MS}))
            self.brokers: Brokers = stack.enter_context(
                PenstockCluster(zookeeper.connect, folder=folder)
            )
        else:
            self.brokers = stack.enter_context(KafkaCluster(3, profile="bench", folder=folder))
        self.start_s = time.monotonic() - began_s
        self.admin = AdminClient({"bootstrap.servers": self.brokers.bootstrap, **CLIENT})

    @property
    def pids(self) -> list[int]:
        return list(self.brokers.pids.values())

    def topic(self, partitions: int = 1, leader: int | None = None) -> str:
        """Creates a topic with three replicas; a `leader` leads its only partition."""
        name, config = f"bench-{next(_numbers)}", {"min.insync.replicas": "2"}
        if leader is None:
            new = NewTopic(name, partitions, 3, config=config)
        else:
            others = [each for each in range(3) if each != leader]
            new = NewTopic(name, 1, replica_assignment=[[leader, *others]], config=config)
        self.admin.create_topics([new])[name].result(WAIT_S)
        return name

    def producer(self, **settings: object) -> Producer:
        # By default a request to a paused leader times out later than that leader's session.
        waits = {"acks": "all", "request.timeout.ms": 2000, "socket.timeout.ms": 2000}
        bootstrap = {"bootstrap.servers": self.brokers.bootstrap}
        return Producer({**bootstrap, **waits, **CLIENT, **settings})

    def leader(self, topic: str) -> int:
        return self._metadata(lambda found: found.topics[topic].partitions[0].leader)

    def controller(self) -> int:
        if self.name == "Penstock":
            return self._metadata(lambda found: found.controller_id)
        # In KRaft mode Metadata names any broker as the controller.
        asked = ("--bootstrap-server", self.brokers.bootstrap, "describe", "--status")
        status = tool("kafka-metadata-quorum", *asked).stdout
        reported = re.search(r"^LeaderId:\s+(\d+)", status, re.MULTILINE)
        if reported is None:
            raise PeerError("Kafka does not tell who its controller is")
        return int(reported[1])

    def _metadata(self, read: Callable[[Any], int]) -> int:
        found = [-1]

        def known() -> bool:
            try:
                found[0] = read(self.admin.list_topics(timeout=5))
            except (KafkaException, KeyError):
                return False
            return found[0] >= 0

        wait_until(known, WAIT_S, "the cluster's metadata")
        return found[0]

    def wait_until_in_sync(self, topic: str) -> None:
        def whole() -> bool:
            try:
                parts = self.admin.list_topics(topic, timeout=5).topics[topic].partitions.values()
            except (KafkaException, KeyError):
                return False
            return bool(parts) and all(len(each.isrs) == 3 for each in parts)

        wait_until(whole, WAIT_S, "all replicas in sync")
