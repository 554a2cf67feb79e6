"""`penstock backup` of a broker under load, and the records that a restored broker serves."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import SOURCE, PenstockBroker
from peers.process import free_ports
from peers.workers import PenstockWorkers

pytestmark = pytest.mark.timeout(180)
QUIET = {"log_level": 0, "socket.timeout.ms": 10_000}
PARTITIONS = 3
QUICK = ("--set", "group.initial.rebalance.delay.ms=0")
SETTINGS = (*QUICK, "--set", "log.segment.bytes=1048576")


def penstock(*words: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *words],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Load:
    """Writes numbered records and transactions over two topics, and commits offsets in a group."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self.acknowledged: set[bytes] = set()
        self.failed: list[object] = []
        self.commits = self.transactions = 0
        self._threads = [
            threading.Thread(target=each) for each in (self._produce, self._copy, self._read)
        ]

    def __enter__(self) -> "Load":
        admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})
        topics = [NewTopic(name, PARTITIONS, 1) for name in ("plain", "left", "right")]
        for done in admin.create_topics(topics).values():
            done.result(30)
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for each in self._threads:
            each.join(60)

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.acknowledged) < count or not self.commits or not self.transactions:
            assert time.monotonic() < deadline, self.failed[:3]
            time.sleep(0.01)

    def _produce(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                **QUIET,
            }
        )

        def done(error: object, message: object) -> None:
            if error is None:
                self.acknowledged.add(message.value())  # type: ignore[attr-defined]
            else:
                self.failed.append(error)

        number = 0
        while not self._stop.is_set():
            if len(producer) < 200:
                producer.produce("plain", (b"%d" % number).ljust(1000), on_delivery=done)
                number += 1
            producer.poll(0 if len(producer) < 200 else 0.01)
        producer.flush(30)

    def _copy(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "transactional.id": "pairs", **QUIET}
        )
        producer.init_transactions(30)
        while not self._stop.is_set():
            producer.begin_transaction()
            for topic in ("left", "right"):
                producer.produce(topic, b"%d" % self.transactions)
            try:
                producer.commit_transaction(30)
            except KafkaException as error:
                self.failed.append(error)
                return
            self.transactions += 1

    def _read(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **QUIET,
            }
        )
        consumer.subscribe(["plain"])
        while not self._stop.is_set():
            if consumer.consume(200, 0.05):
                consumer.commit(asynchronous=False)
                self.commits += 1
        consumer.close()


def ends(bootstrap: str, topic: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends", **QUIET})
    found = {
        each: consumer.get_watermark_offsets(TopicPartition(topic, each), 30)[1]
        for each in range(PARTITIONS)
    }
    consumer.close()
    return found


def values(bootstrap: str, topic: str) -> list[bytes]:
    """All committed records."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "all", "enable.partition.eof": True, **QUIET}
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    found: list[bytes] = []
    at_end = 0
    deadline = time.monotonic() + 60
    while at_end < PARTITIONS:
        assert time.monotonic() < deadline
        for message in consumer.consume(1000, 0.1):
            if message.error():
                at_end += 1
            else:
                found.append(message.value() or b"")
    consumer.close()
    return found


def committed(bootstrap: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    (done,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("readers")]).values()
    return {each.partition: each.offset for each in done.result(30).topic_partitions}


@contextmanager
def restored(backup: Path, folder: Path, *options: str) -> Iterator[PenstockBroker]:
    broker = PenstockBroker(*options, folder=folder)
    penstock("restore", backup, "--dir", broker.directory)
    with broker:
        yield broker


def check_restored(bootstrap: str, acknowledged: set[bytes]) -> None:
    read = Counter(values(bootstrap, "plain"))
    assert acknowledged <= read.keys()
    assert [value for value, count in read.items() if count > 1] == []
    offsets, reached = committed(bootstrap), ends(bootstrap, "plain")
    assert offsets
    assert all(offset <= reached[partition] for partition, offset in offsets.items())
    left, right = values(bootstrap, "left"), values(bootstrap, "right")
    assert left
    assert sorted(left) == sorted(right), "a transaction is there by half"
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "pairs", **QUIET})
    producer.init_transactions(60)  # aborts the transaction that the backup cut in two


def test_a_restored_broker_has_all_acknowledged_records(tmp_path: Path) -> None:
    """The broker has two log directories, which are restored to other paths."""
    backup = tmp_path / "backup"
    former, new = (",".join(str(tmp_path / each) for each in pair) for pair in ("ab", "cd"))
    with (
        PenstockBroker(*SETTINGS, "--set", f"log.dirs={former}") as broker,
        Load(broker.bootstrap) as load,
    ):
        load.wait_for(5000)
        before = set(load.acknowledged)
        reported = penstock("backup", backup, "--dir", broker.directory)
        load.wait_for(len(load.acknowledged) + 500)  # the broker continues after the backup
    assert load.failed == []
    assert "the broker was paused for" in reported
    again = PenstockBroker(*SETTINGS, "--set", f"log.dirs={new}", folder=tmp_path / "restored")
    reported = penstock("restore", backup, "--dir", again.directory, "--log-dirs", new)
    assert reported.endswith(f"penstock serve --dir {again.directory} --set log.dirs={new}\n")
    with again:
        check_restored(again.bootstrap, before)
        for each in new.split(","):
            assert "no damage" in penstock("log", "verify", each)


def test_all_workers_are_paused_together(tmp_path: Path) -> None:
    backup, folder = tmp_path / "backup", tmp_path / "first"
    with PenstockWorkers(2, *QUICK, folder=folder) as broker, Load(broker.bootstrap) as load:
        load.wait_for(1000)
        before = set(load.acknowledged)
        penstock("backup", backup, "--dir", broker.directory)
        load.wait_for(len(load.acknowledged) + 200)
    assert load.failed == []
    again = PenstockWorkers(2, *QUICK, folder=tmp_path / "restored")
    penstock("restore", backup, "--dir", again.directory)
    with again:
        check_restored(again.bootstrap, before)


def test_an_idempotent_producer_continues_with_the_restored_broker(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    backup = tmp_path / "backup"
    producer = Producer(
        {"bootstrap.servers": f"127.0.0.1:{port}", "enable.idempotence": True, **QUIET}
    )
    with PenstockBroker("--port", str(port)) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
        admin.create_topics([NewTopic("plain", PARTITIONS, 1)])["plain"].result(30)
        for number in range(100):
            producer.produce("plain", b"%d" % number)
        assert producer.flush(30) == 0
        penstock("backup", backup, "--dir", broker.directory)
    with restored(backup, tmp_path / "restored", "--port", str(port)) as again:
        for number in range(100, 200):
            producer.produce("plain", b"%d" % number)
        assert producer.flush(60) == 0
        assert sorted(map(int, values(again.bootstrap, "plain"))) == list(range(200))
