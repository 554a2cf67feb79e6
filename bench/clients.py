"""Real clients: python -m bench clients [--factor 1|3] [--rounds N] [--scale X] [--out FILE]

Kafka's own perf tools and librdkafka write and read the usual workloads of broker comparisons:
records of 1 KB, of 100 B with lz4, and of 1 KB at 20,000 a second. The main figure is the brokers'
CPU per record. Brokers and clients share both cores, as on a small server.
"""

import argparse
import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import uuid4

import bench.cluster_subject
from bench.interpreter import about
from bench.process import cpu_s, family
from bench.report import Report
from bench.subject import Kafka, Penstock
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.tools import tool

PARTITIONS = 3
LONG_S = 600
CPU, CPU_AIM = "CPU us per record", "<= 0.4"
NAMES = ("Penstock", "Kafka")
Figures = dict[str, float]
_numbers = count()


class Workload(NamedTuple):
    """A run of kafka-producer-perf-test; `reads` adds a run of kafka-consumer-perf-test."""

    name: str
    records: int
    size: int
    per_s: int = -1
    compression: str = "none"
    reads: bool = False


WRITES = (
    Workload("Java writes 1 KB", 600_000, 1000, reads=True),
    Workload("Java writes 100 B, lz4", 2_000_000, 100, compression="lz4"),
    Workload("Java writes 1 KB, 20,000/s", 300_000, 1000, per_s=20_000),
)
SENT = re.compile(r"records sent, ([\d.]+) records/sec .* ([\d.]+) ms avg latency.* (\d+) ms 99th")


class Brokers(Protocol):
    """One broker or three."""

    name: str

    @property
    def bootstrap(self) -> str: ...
    @property
    def pids(self) -> list[int]: ...


class Single:
    """A broker alone, as `bench broker` starts it."""

    def __init__(self, kind: type[Kafka] | type[Penstock], stack: ExitStack) -> None:
        self._subject = kind(stack)
        self.name, self.bootstrap = kind.name, f"127.0.0.1:{self._subject.port}"

    @property
    def pids(self) -> list[int]:
        return self._subject.pids


class Three:
    """Three brokers; topics have replication factor 3."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        self._subject = bench.cluster_subject.Subject(name, stack)
        self.name, self.bootstrap = name, self._subject.brokers.bootstrap

    @property
    def pids(self) -> list[int]:
        return self._subject.pids


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench clients")
    parser.add_argument("--factor", type=int, choices=(1, 3), default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    parser.add_argument("--only", choices=NAMES, help="one of them alone")
    parser.add_argument("--out", type=Path, help="write the figures here too, as JSON")
    args = parser.parse_args(argv)
    described, report = about(), Report()
    with ExitStack() as stack:
        subjects = [
            started(name, args.factor, stack) for name in NAMES if args.only in (None, name)
        ]
        for _ in range(args.rounds):
            for subject in subjects:
                measure(subject, args.factor, args.scale, report)
        for subject in subjects:
            report.add("after all of it", subject.name, {"peak RSS MB": peak_mb(subject.pids)})
    print(report.text())
    report.keep(args.out, about=described, rounds=args.rounds)


def started(name: str, factor: int, stack: ExitStack) -> Brokers:
    if factor == 3:
        return Three(name, stack)
    return Single(Penstock if name == "Penstock" else Kafka, stack)


def measure(subject: Brokers, factor: int, scale: float, report: Report) -> None:
    def note(name: str, records: int, work: Callable[..., Figures], *given: object) -> None:
        before_s = cpu_s(subject.pids)
        figures = work(subject, topic, records, *given)
        cost = {CPU: (cpu_s(subject.pids) - before_s) / records * 1e6}
        report.add(name, subject.name, {**cost, **figures}, {CPU: CPU_AIM})

    for workload in WRITES:
        records, topic = round(workload.records * scale), new_topic(subject, factor)
        note(workload.name, records, java_writes, workload)
        if workload.reads:
            note("Java reads 1 KB", records, java_reads)
    records, topic = round(300_000 * scale), new_topic(subject, factor)
    note("librdkafka writes 1 KB", records, librdkafka_writes)
    note("librdkafka reads 1 KB", records, librdkafka_reads)


def new_topic(subject: Brokers, factor: int) -> str:
    name = f"clients-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": subject.bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, factor)])[name].result(LONG_S)
    return name


def java_writes(subject: Brokers, topic: str, records: int, workload: Workload) -> Figures:
    reported = tool(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(workload.size)),
        *("--throughput", str(workload.per_s), "--producer-props"),
        *(f"bootstrap.servers={subject.bootstrap}", "acks=all"),
        f"compression.type={workload.compression}",
        profile="bench",
        timeout_s=LONG_S,
    ).stdout
    per_s, mean_ms, p99_ms = map(float, SENT.findall(reported)[-1])
    if workload.per_s > 0:
        return {"mean ms": mean_ms, "p99 ms": p99_ms}
    return {"records/s": per_s}


def java_reads(subject: Brokers, topic: str, records: int) -> Figures:
    began_s = time.monotonic()
    tool(
        "kafka-consumer-perf-test",
        *("--bootstrap-server", subject.bootstrap, "--topic", topic),
        *("--num-records", str(records), "--timeout", "60000", "--hide-header"),
        profile="bench",
        timeout_s=LONG_S,
    )
    return {"s with the tool's start": time.monotonic() - began_s}


def librdkafka_writes(subject: Brokers, topic: str, records: int) -> Figures:
    producer = Producer({"bootstrap.servers": subject.bootstrap, "linger.ms": 5})
    value, began_s = bytes(1000), time.monotonic()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.01)
    if producer.flush(LONG_S):
        raise TimeoutError(f"{subject.name} did not take all records")
    return {"records/s": records / (time.monotonic() - began_s)}


def librdkafka_reads(subject: Brokers, topic: str, records: int) -> Figures:
    consumer = Consumer(
        {
            "bootstrap.servers": subject.bootstrap,
            "group.id": f"bench-{uuid4()}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found, first_s = 0, 0.0
    while found < records:
        batch = consumer.consume(10_000, 30)
        if not batch:
            raise TimeoutError(f"{subject.name} gave {found} of {records} records")
        first_s = first_s or time.monotonic()  # the time to join the group is not measured
        found += len(batch)
    took_s = time.monotonic() - first_s
    consumer.close()
    return {"records/s": records / took_s}


def peak_mb(pids: list[int]) -> float:
    """The peak memory of the largest broker, with its children, since its start."""

    def peak_kb(pid: int) -> int:
        (found,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found)

    return max(sum(map(peak_kb, family([pid]))) for pid in pids) / 1000
