"""Coordinators are killed with their brokers: groups and transactions continue on another broker.

Two programs copy a topic in transactions, in a group, and abort at random. Meanwhile the brokers
that coordinate their transactions and their group are killed and restarted. The copy must hold
every record once, in the order of its partition.
"""

import os
import re
import time
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from clients.catalog import Name
from clients.copying.programs import COPIERS
from peers.penstock_cluster import PenstockCluster
from peers.process import Process, last_lines, wait_until
from peers.zookeeper import ZooKeeper
from penstock.broker.startup.state_file import read_state
from penstock.coordinator.keys import partition_for

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

PARTITIONS, RECORDS = 4, 1500
STATE_PARTITIONS = 6
WAIT_S = 60
ABORT_CHANCE = "0.25"
SOAK = bool(os.environ.get("PENSTOCK_SOAK"))
ROUNDS = 5 if SOAK else 1
CLIENTS: list[Name] = ["librdkafka", "java", "franz-go"] if SOAK else ["librdkafka"]
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 100}


@pytest.fixture(scope="module")
def cluster() -> Iterator[PenstockCluster]:
    settings = {
        "offsets.topic.num.partitions": STATE_PARTITIONS,
        "transaction.state.log.num.partitions": STATE_PARTITIONS,
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        "min.insync.replicas": 2,
        "zookeeper.session.timeout.ms": 3000,
        "penstock.http.listen": "127.0.0.1:0",
    }
    with (
        ZooKeeper(settings={"tickTime": 500}) as zookeeper,
        PenstockCluster(zookeeper.connect, 3, settings=settings) as cluster,
    ):
        yield cluster


def created(bootstrap: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for done in admin.create_topics([NewTopic(each, PARTITIONS, 3) for each in topics]).values():
        done.result(WAIT_S)


def fed(bootstrap: str, topic: str) -> dict[int, list[bytes]]:
    """Fills the topic; returns what the copy must hold in each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0
    return {
        at: [b"copy of %d" % number for number in range(at, RECORDS, PARTITIONS)]
        for at in range(PARTITIONS)
    }


def seen(bootstrap: str, topic: str) -> dict[int, list[bytes]]:
    """Everything that a read_committed consumer sees of each partition up to its last stable
    offset.
    """
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            **QUIET,
        }
    )
    found: dict[int, list[bytes]] = {at: [] for at in range(PARTITIONS)}
    reader.assign([TopicPartition(topic, at, 0) for at in found])
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = reader.poll(WAIT_S)
        assert message is not None
        if message.error():
            ended.add(message.partition() or 0)
        else:
            found[message.partition() or 0].append(message.value() or b"")
    reader.close()
    return found


def leader_of(cluster: PenstockCluster, topic: str, key: str) -> int:
    """The broker that coordinates the group or transactional id `key`."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    partition = partition_for(key, STATE_PARTITIONS)
    found: list[int] = []

    def known() -> bool:
        leader = admin.list_topics(topic, WAIT_S).topics[topic].partitions[partition].leader
        found.append(leader)
        return leader in cluster.running

    wait_until(known, WAIT_S, f"a leader of {topic}-{partition}")
    return found[-1]


STUCK_S = 15
"""librdkafka may wait for ever for a group coordinator that it has cached and that is gone,
whatever the timeout of `send_offsets_to_transaction` (its issues 5456 and 5511).
"""


class Copiers:
    """Programs that copy. Those that end or make no progress are restarted, as a supervisor
    would.
    """

    def __init__(self, folder: Path, commands: dict[str, list[str]]) -> None:
        self._programs = []
        for name, command in commands.items():
            (folder / name).mkdir()
            self._programs.append(Process(name, command, folder / name))
        self._copied, self._since_s = -1, 0.0

    def revive(self, copied: int) -> None:
        now_s = time.monotonic()
        if copied != self._copied:
            self._copied, self._since_s = copied, now_s
        elif now_s > self._since_s + STUCK_S:
            self._since_s = now_s
            for each in self._programs:
                each.kill()
        for each in self._programs:
            if not each.running:
                each.start()

    def stop(self) -> None:
        for each in self._programs:
            each.terminate()
        for each in self._programs:
            each.stop()
            print(last_lines(each.output))


@pytest.mark.row("A039", "A111")
@pytest.mark.parametrize("name", CLIENTS)
def test_a_copy_is_exact_although_its_coordinators_are_killed(
    name: Name, cluster: PenstockCluster, topic: str, tmp_path: Path
) -> None:
    copy, bootstrap = f"{topic}-copy", cluster.bootstrap
    created(bootstrap, topic, copy)
    what = [topic, copy, ABORT_CHANCE]
    copiers = Copiers(
        tmp_path,
        {
            each: [*COPIERS[name](), bootstrap, topic, f"{topic}-{each}", *what]
            for each in ("first", "second")
        },
    )

    def copied(at_least: int) -> bool:
        size = sum(map(len, seen(bootstrap, copy).values()))
        copiers.revive(size)
        return size >= at_least

    def progress(by: int) -> None:
        """Waits until `by` more records, or all of them, are copied."""
        already = sum(map(len, seen(bootstrap, copy).values()))
        goal = min(already + by, RECORDS)
        wait_until(partial(copied, goal), WAIT_S, f"{goal} records in {copy}")

    wanted = fed(bootstrap, topic)
    try:
        progress(by=100)
        for _ in range(ROUNDS):
            for state, key in (
                ("__transaction_state", f"{topic}-first"),
                ("__consumer_offsets", topic),
            ):
                victim = leader_of(cluster, state, key)
                cluster.kill(victim)
                progress(by=100)
                cluster.start(victim)
                progress(by=50)
        wait_until(partial(copied, RECORDS), WAIT_S, f"{copy} to be whole")
    finally:
        copiers.stop()
    assert seen(bootstrap, copy) == wanted


def lags(cluster: PenstockCluster, group: str) -> dict[str, float]:
    """Lag by partition, as the group's coordinator reports it in its metrics."""
    found: dict[str, float] = {}
    for broker in cluster.running:
        state = read_state(cluster.directory(broker))
        assert state is not None
        with urllib.request.urlopen(f"http://{state.http}/metrics", timeout=10) as response:
            text = response.read().decode()
        pattern = rf'^kafka_consumergroup_lag{{consumergroup="{group}",.*partition="(\d+)"}} (\S+)$'
        found |= {at: float(lag) for at, lag in re.findall(pattern, text, re.MULTILINE)}
    return found


def test_lag_includes_partitions_led_by_other_brokers(cluster: PenstockCluster, topic: str) -> None:
    created(cluster.bootstrap, topic)
    fed(cluster.bootstrap, topic)
    reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": topic, **QUIET})
    read = [TopicPartition(topic, at, at) for at in range(PARTITIONS)]
    reader.commit(offsets=read, asynchronous=False)
    reader.close()
    each = RECORDS // PARTITIONS
    wanted = {f"{at}": each - at for at in range(PARTITIONS)}
    wait_until(lambda: lags(cluster, topic) == wanted, 20, "the lag in all partitions")
