"""Metrics, as the real Prometheus and its tool read them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import PenstockBroker
from peers.process import wait_until
from peers.prometheus import Prometheus, promtool
from penstock.broker.startup.state_file import read_state
from penstock.testing.cluster import TemporaryCluster

pytestmark = pytest.mark.peer

QUIET = {"log_level": 0}
RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
OURS = ("penstock_", "process_", "python_", "consumer_")


def test_the_page_passes_promtool(penstock: PenstockBroker) -> None:
    """promtool may complain only about names that Kafka and kafka_exporter chose."""
    servers = {"bootstrap.servers": penstock.bootstrap, **QUIET}
    producer = Producer(servers)
    producer.produce("promtool", b"x")
    assert producer.flush(10) == 0
    consumer = Consumer({**servers, "group.id": 'odd "group\\"'})
    consumer.commit(offsets=[TopicPartition("promtool", 0, 0)], asynchronous=False)
    consumer.close()
    state = read_state(penstock.directory)
    assert state is not None
    with urlopen(f"http://{state.http}/metrics", timeout=10) as response:
        page = response.read().decode()
    checked = promtool("check", "metrics", given=page)
    complaints = checked.stderr.splitlines()
    assert checked.returncode in (0, 3), checked.stderr  # 1: the page is unreadable
    assert [each for each in complaints if each.startswith(OURS)] == []


def test_promtool_accepts_the_alerts() -> None:
    checked = promtool("check", "rules", str(RULES))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "8 rules found" in checked.stdout


def impatient(rules: str) -> str:
    """The same alerts with much shorter durations: a test cannot wait ten minutes."""
    rules = re.sub(r"for: \w+", "for: 0s", rules)
    return rules.replace("[10m]", "[5s]").replace("> 10000", "> 100")


class Watch:
    """A cluster with a Prometheus that watches it."""

    def __init__(self, cluster: TemporaryCluster, prometheus: Prometheus) -> None:
        self.cluster, self.prometheus = cluster, prometheus

    def look(self) -> None:
        """Scrape the brokers that are running now."""
        running = sorted(self.cluster.running)
        self.prometheus.scrape(self.cluster.http(each) for each in running)

    def start(self, broker: int, *more_log_dirs: Path) -> None:
        log_dirs = [self.cluster.local.folder(broker) / "logs", *more_log_dirs]
        self.cluster.local.change(settings={"log.dirs": ",".join(map(str, log_dirs))})
        self.cluster.start(broker)

    def sees(self, *alerts: str) -> None:
        wait_until(lambda: self.prometheus.firing() >= set(alerts), 30, f"{alerts} to fire")

    def sees_none(self, *alerts: str) -> None:
        wait_until(lambda: not self.prometheus.firing() & set(alerts), 40, f"{alerts} to end")

    def controller(self) -> int:
        for each in sorted(self.cluster.running):
            with urlopen(f"http://{self.cluster.http(each)}/metrics", timeout=10) as response:
                if b"_activecontrollercount 1" in response.read():
                    return each
        raise AssertionError("there is no controller")


@contextmanager
def writing(bootstrap: str, topic: str) -> Iterator[None]:
    """Writes a record again and again."""
    stop = Event()

    def run() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, **QUIET})
        while not stop.wait(0.2):
            producer.produce(topic, b"x", partition=0)
            producer.poll(0)
        producer.flush(10)

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.row("A082")
@pytest.mark.row("A160")
@pytest.mark.row("A166")
def test_each_alert_fires_during_its_fault_and_ends_after_it(tmp_path: Path) -> None:
    settings = {
        "zookeeper.session.timeout.ms": "8000",
        "offsets.topic.replication.factor": "3",
        "offsets.topic.num.partitions": "1",
        "replica.lag.time.max.ms": "2000",
    }
    with (
        TemporaryCluster(3, settings=settings, directory=tmp_path / "cluster") as cluster,
        Prometheus(impatient(RULES.read_text())) as prometheus,
    ):
        watch = Watch(cluster, prometheus)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
        everywhere = {"min.insync.replicas": "2"}
        made = admin.create_topics(
            [
                NewTopic("safe", 1, replica_assignment=[[0, 1, 2]], config=everywhere),
                NewTopic("single", 1, replica_assignment=[[2]]),
            ]
        )
        for each in made.values():
            each.result(20)
        servers = {"bootstrap.servers": cluster.bootstrap, **QUIET}
        producer = Producer(servers)
        for _ in range(200):
            producer.produce("safe", b"x", partition=0)
        assert producer.flush(20) == 0
        consumer = Consumer({**servers, "group.id": "late"})
        watch.look()

        with writing(cluster.bootstrap, "safe"):
            wait_until(lambda: not prometheus.firing(), 40, "all alerts to end")

        watch.sees("NoMessageForTooLong")
        consumer.commit(offsets=[TopicPartition("safe", 0, 0)], asynchronous=False)
        watch.sees("TooLargeConsumerGroupLag")
        cluster.kill(2)
        watch.sees("UnderReplicatedPartitions", "UnderReplicatedPartition", "OfflinePartitions")
        cluster.stop(1)
        watch.sees("UnderMinIsrPartitionCount")

        broken = tmp_path / "broken"
        broken.write_text("no directory")
        watch.start(1)
        watch.start(2, broken)
        watch.look()
        watch.sees("OfflineLogDirectoryCount")
        consumer.commit(offsets=[TopicPartition("safe", 0, 200)], asynchronous=False)
        with writing(cluster.bootstrap, "safe"):
            watch.sees_none(*(prometheus.firing() - {"OfflineLogDirectoryCount"}))
            cluster.stop(2)
            watch.start(2)
            watch.look()
            watch.sees_none("OfflineLogDirectoryCount")

            paused = watch.controller()
            cluster.pause(paused)
            watch.sees("AbnormalControllerState")
            watch.sees_none("AbnormalControllerState")
            cluster.resume(paused)
            watch.sees_none(*prometheus.firing())
        consumer.close()
