"""What the previous release wrote is taken over, by a single node and by a cluster that is upgraded
under load, broker by broker; nothing is lost.
"""

import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from peers.penstock import SOURCE, PenstockBroker
from peers.penstock_cluster import PenstockCluster
from peers.process import wait_until
from peers.zookeeper import ZooKeeper
from penstock.broker.startup.state_file import read_state

ROOT = Path(__file__).parents[2]
PARTITIONS, BROKERS = 6, 3
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 100}


def previous_release(folder: Path) -> Path:
    """The sources of 0.1.0, from the commit that the changelog names."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    commit = re.findall(r"It is commit ([0-9a-f]{40})\.", text)[0]
    git = shutil.which("git")
    archive = folder / "previous.tar"
    words = ["git", "archive", "--output", str(archive), commit, "src"]
    if git is None or subprocess.run(words, cwd=ROOT, check=False).returncode:
        pytest.skip("the history of the repository is not here")
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    return folder / "src"


class Upgraded(PenstockCluster):
    """Brokers that start with the previous release and restart with this one."""

    def __init__(self, zookeeper: str, previous: Path, **settings: object) -> None:
        super().__init__(zookeeper, BROKERS, settings=settings)
        self._sources = dict.fromkeys(range(BROKERS), previous)

    def source(self, broker: int) -> Path:
        return self._sources[broker]

    def upgrade(self, broker: int) -> None:
        self.stop(broker)
        self._sources[broker] = SOURCE
        self._processes[broker] = self._process(broker)
        self.start(broker)


class Load:
    """Writes numbered records to a topic, and remembers those that were acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET}
        )
        self._stop = threading.Event()
        self.acknowledged: set[int] = set()
        self.failed: list[object] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(90)

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            self._producer.produce("events", b"%d" % number, on_delivery=self._done)
            number += 1
            self._producer.poll(0.002)
        self._producer.flush(60)

    def _done(self, error: object, message: object) -> None:
        if error is None:
            self.acknowledged.add(int(message.value()))  # type: ignore[attr-defined]
        else:
            self.failed.append(error)

    def more(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= wanted, 60, "more acknowledged records")


def in_sync(admin: AdminClient) -> bool:
    partitions = admin.list_topics("events", timeout=30).topics["events"].partitions
    return len(partitions) == PARTITIONS and all(
        len(each.isrs) == BROKERS for each in partitions.values()
    )


@pytest.mark.soak
@pytest.mark.peer
@pytest.mark.timeout(600)
def test_a_cluster_of_the_previous_release_is_upgraded_under_load(tmp_path: Path) -> None:
    previous = previous_release(tmp_path)
    settings = {"min.insync.replicas": 2, "group.initial.rebalance.delay.ms": 0}
    with (
        ZooKeeper() as zookeeper,
        Upgraded(zookeeper.connect, previous, **settings) as cluster,
    ):
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
        admin.create_topics([NewTopic("events", PARTITIONS, BROKERS)])["events"].result(60)
        with Load(cluster.bootstrap) as load:
            load.more(500)
            for broker in range(BROKERS):
                cluster.upgrade(broker)
                wait_until(lambda: in_sync(admin), 60, "all replicas to be in sync")
                load.more(500)
        assert load.failed == []
        assert all(read_state(cluster.directory(each)) for each in range(BROKERS))
        assert read_all(cluster.bootstrap) == sorted(load.acknowledged)


def transactional(broker: PenstockBroker) -> Producer:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "payments", **QUIET}
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    return producer


def committed(broker: PenstockBroker) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "billing", **QUIET})
    (found,) = consumer.committed([TopicPartition("events", 0)], 60)
    consumer.close()
    return int(found.offset)


@pytest.mark.soak
@pytest.mark.timeout(180)
def test_a_single_node_of_the_previous_release_is_upgraded(tmp_path: Path) -> None:
    node = tmp_path / "node"
    previous = previous_release(tmp_path)
    quick = ("--set", "group.initial.rebalance.delay.ms=0")
    with PenstockBroker(*quick, folder=node, source=previous) as old:
        admin = AdminClient({"bootstrap.servers": old.bootstrap, **QUIET})
        topic = NewTopic("events", PARTITIONS, 1, config={"retention.ms": "7777777"})
        admin.create_topics([topic])["events"].result(60)
        with Load(old.bootstrap) as load:
            load.more(500)
        producer = transactional(old)
        group = Consumer({"bootstrap.servers": old.bootstrap, "group.id": "billing", **QUIET})
        producer.produce("events", b"-1", partition=0)
        producer.send_offsets_to_transaction(
            [TopicPartition("events", 0, 7)], group.consumer_group_metadata(), 60
        )
        producer.commit_transaction(60)
        producer.begin_transaction()
        producer.produce("events", b"-2", partition=0)
        producer.flush(60)  # left open: the upgraded broker has to end it
        group.close()
    with PenstockBroker(*quick, folder=node) as new:
        assert committed(new) == 7
        resource = ConfigResource(ConfigResource.Type.TOPIC, "events")
        admin = AdminClient({"bootstrap.servers": new.bootstrap, **QUIET})
        assert admin.describe_configs([resource])[resource].result(60)["retention.ms"].value == (
            "7777777"
        )
        continued = transactional(new)
        continued.produce("events", b"-3", partition=0)
        continued.commit_transaction(60)
        assert load.failed == []
        assert read_all(new.bootstrap) == sorted({-3, -1, *load.acknowledged})


def read_all(bootstrap: str) -> list[int]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "enable.partition.eof": True, **QUIET}
    )
    consumer.assign([TopicPartition("events", each, 0) for each in range(PARTITIONS)])
    found: list[int] = []
    ended, deadline = 0, time.monotonic() + 60
    while ended < PARTITIONS:
        assert time.monotonic() < deadline
        for message in consumer.consume(1000, 0.1):
            if message.error():
                ended += 1
            else:
                found.append(int(message.value() or b""))
    consumer.close()
    return sorted(found)
