"""Three brokers, RF 3, acks=all: Penstock on ZooKeeper beside Apache Kafka in KRaft mode.

Clients are librdkafka's, the same for both, on the same cores as the brokers.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count, pairwise
from os import kill
from pathlib import Path
from threading import Event, Thread
from typing import Any, Protocol

from bench.process import cpu_s, resident_mb
from bench.report import Report
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from peers.kafka import KafkaCluster
from peers.penstock_cluster import PenstockCluster
from peers.process import PeerError, wait_until
from peers.zookeeper import ZooKeeper

CLIENT: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 50,
}
AIMS = {
    "MB/s": ">= 1",
    "CPU s per GB": "<= 0.7",
    "p99 ms": "<= 1",
}
LIMITS = {
    "start, with ZooKeeper: s": 5.0,
    "idle: RSS MB": 200.0,
    "1,000 partitions x 3: s until each was written to": 3.0,
    "leader killed: s without writes": 2.0,
    "leader that is controller killed: s without writes": 2.0,
    "leader paused: s without writes": 7.0,
    "leader shut down: s without writes": 0.5,
}
WAIT_S = 120
RECORD = b"x" * 1000
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
    """A cluster of three that runs until the stack unwinds; its defaults are its own."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        self.name = name
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        began_s = time.monotonic()
        if name == "Penstock":
            zookeeper = stack.enter_context(ZooKeeper())
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

    def topic(self, partitions: int) -> str:
        name = f"bench-{next(_numbers)}"
        new = NewTopic(name, partitions, 3, config={"min.insync.replicas": "2"})
        self.admin.create_topics([new])[name].result(WAIT_S)
        return name

    def producer(self, **settings: object) -> Producer:
        # By default a request to a leader that stands still is waited for longer than its session.
        waits = {"acks": "all", "request.timeout.ms": 2000, "socket.timeout.ms": 2000}
        bootstrap = {"bootstrap.servers": self.brokers.bootstrap}
        return Producer({**bootstrap, **waits, **CLIENT, **settings})

    def leader(self, topic: str) -> int:
        return self._metadata(lambda found: found.topics[topic].partitions[0].leader)

    def controller(self) -> int:
        return self._metadata(lambda found: found.controller_id)

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


def throughput(subject: Subject, megabytes: int) -> dict[str, float]:
    topic = subject.topic(3)
    producer = subject.producer(**{"linger.ms": 5, "batch.size": 1_000_000})
    write(producer, topic, 20)  # connections, and the first look at the topic
    cpu, began_s = cpu_s(subject.pids), time.monotonic()
    written = write(producer, topic, megabytes)
    took_s, used_s = time.monotonic() - began_s, cpu_s(subject.pids) - cpu
    return {"MB/s": written / took_s / 1e6, "CPU s per GB": used_s / written * 1e9}


def write(producer: Producer, topic: str, megabytes: int) -> int:
    failed: list[object] = []

    def told(error: object, _: object) -> None:
        if error:
            failed.append(error)

    for number in range(megabytes * 1000):
        while True:
            try:
                producer.produce(topic, RECORD, partition=number // 500 % 3, on_delivery=told)
            except BufferError:
                producer.poll(0.05)
            else:
                break
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush(WAIT_S)
    if failed:
        raise PeerError(f"not every record was written: {failed[0]}")
    return megabytes * 1000 * len(RECORD)


def end_to_end(subject: Subject, seconds: float) -> dict[str, float]:
    """From `produce` to the consumer, one record each 10 ms."""
    topic = subject.topic(1)
    consumer = Consumer(
        {"bootstrap.servers": subject.brokers.bootstrap, "group.id": "bench", **CLIENT}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    producer, took_ms, done = subject.producer(**{"linger.ms": 0}), list[float](), Event()

    def read() -> None:
        while not done.is_set():
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                sent_s = float((message.value() or b"0").decode())
                took_ms.append((time.monotonic() - sent_s) * 1000)

    reader = Thread(target=read)
    reader.start()
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        producer.produce(topic, f"{time.monotonic()}".encode())
        producer.poll(0.01)
    producer.flush(WAIT_S)
    done.wait(0.5)
    done.set()
    reader.join()
    consumer.close()
    ordered = sorted(took_ms[100:])
    return {
        "p50 ms": ordered[len(ordered) // 2],
        "p99 ms": ordered[int(len(ordered) * 0.99)],
    }


def many_partitions(subject: Subject, partitions: int) -> float:
    """Until each was created and has taken a record."""
    began_s = time.monotonic()
    topic = subject.topic(partitions)
    producer, told = subject.producer(**{"linger.ms": 0}), list[object]()
    for each in range(partitions):
        producer.produce(topic, b"x", partition=each, on_delivery=lambda e, _: told.append(e))
    producer.flush(WAIT_S)
    if told != [None] * partitions:
        raise PeerError("not every partition took its record")
    return time.monotonic() - began_s


@contextmanager
def writing(subject: Subject, topic: str) -> Iterator[list[float]]:
    """Writes to one partition all the time; the moments at which records were acknowledged."""
    producer, acked_s, done = subject.producer(**{"linger.ms": 0}), list[float](), Event()

    def told(error: object, _: object) -> None:
        if not error:
            acked_s.append(time.monotonic())

    def write_on() -> None:
        while not done.is_set():
            if len(producer) < 100:
                producer.produce(topic, b"x" * 100, partition=0, on_delivery=told)
            producer.poll(0.005)
        producer.flush(WAIT_S)

    writer = Thread(target=write_on)
    writer.start()
    try:
        wait_until(lambda: len(acked_s) > 200, WAIT_S, "writes")
        yield acked_s
    finally:
        done.set()
        writer.join()


def gap(
    subject: Subject, happens: Callable[[int], object], heals: Callable[[int], object]
) -> float:
    """The longest time without a write when this happens to the leader."""
    topic = subject.topic(1)
    subject.wait_until_in_sync(topic)
    leader = subject.leader(topic)
    with writing(subject, topic) as acked_s:
        before = len(acked_s)
        happens(leader)
        wait_until(lambda: subject.leader(topic) != leader, WAIT_S, "another leader")
        seen = len(acked_s)
        wait_until(lambda: len(acked_s) > seen + 50, WAIT_S, "writes")
        longest = max(b - a for a, b in pairwise(acked_s[before - 1 :]))
        heals(leader)
        subject.wait_until_in_sync(topic)
    return longest


def controller_gap(subject: Subject) -> float:
    """Topics are made until the controller leads one."""
    while True:
        topic = subject.topic(1)
        if subject.leader(topic) == subject.controller():
            break
    brokers, controller = subject.brokers, subject.controller()
    with writing(subject, topic) as acked_s:
        before = len(acked_s)
        brokers.kill(controller)
        wait_until(lambda: subject.leader(topic) != controller, WAIT_S, "another leader")
        seen = len(acked_s)
        wait_until(lambda: len(acked_s) > seen + 50, WAIT_S, "writes")
        longest = max(b - a for a, b in pairwise(acked_s[before - 1 :]))
        brokers.start(controller)
        subject.wait_until_in_sync(topic)
    return longest


def measure(subject: Subject, args: argparse.Namespace, load: Report, events: Report) -> None:
    brokers = subject.brokers

    def note(what: str, value: float) -> None:
        name, figure = what.split(": ")
        aim = f"<= {LIMITS[what]:g} {figure.split()[0]}" if what in LIMITS else ""
        events.add(name, subject.name, {figure: value}, {figure: aim})
        print(f"{subject.name}: {what} {value:.2f}", file=sys.stderr)

    def signalled(number: signal.Signals) -> Callable[[int], None]:
        return lambda broker: kill(brokers.pids[broker], number)

    note("start, with ZooKeeper: s", subject.start_s)
    Event().wait(2)
    note("idle: RSS MB", resident_mb(subject.pids))
    for number in range(args.rounds + 1):
        figures = throughput(subject, args.megabytes)
        if number:  # the first is for warmth
            load.add("produce 1 KB records", subject.name, figures, AIMS)
    load.add("end to end, 100 records/s", subject.name, end_to_end(subject, args.seconds), AIMS)
    note(
        "1,000 partitions x 3: s until each was written to",
        many_partitions(subject, 1000),
    )
    for _ in range(args.rounds):
        note("leader killed: s without writes", gap(subject, brokers.kill, brokers.start))
        note("leader shut down: s without writes", gap(subject, brokers.stop, brokers.start))
    if subject.name == "Penstock":  # in KRaft mode clients do not hear who the controller is
        note("leader that is controller killed: s without writes", controller_gap(subject))
    pause, go_on = signalled(signal.SIGSTOP), signalled(signal.SIGCONT)
    note("leader paused: s without writes", gap(subject, pause, go_on))


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench cluster", description=__doc__)
    parser.add_argument("--only", choices=["penstock", "kafka"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=300, help="of each round of produce")
    parser.add_argument("--seconds", type=float, default=20, help="of the end-to-end measurement")
    parser.add_argument("--out", type=Path, help="write the figures there as JSON")
    args = parser.parse_args(argv)
    load, events = Report(), Report()
    try:
        for name in ("Penstock", "Kafka"):
            if args.only in (None, name.lower()):
                with ExitStack() as stack:
                    measure(Subject(name, stack), args, load, events)
    except PeerError as error:
        sys.exit(f"bench: {error}")
    print(load.text(), events.text(), sep="\n\n")
    if args.out:
        tables = {"load": load.jsonable(), "events": events.jsonable()}
        args.out.write_text(json.dumps(tables, indent=1) + "\n")
