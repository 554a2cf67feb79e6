"""The workloads of the two tables, and the measurement of one of them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Literal

from bench.batch import KB_64, MB_1, ONE_RECORD, Batch
from bench.load.generator import Load, load
from bench.process import cpu_s, pinned, touch_memory
from bench.subject import Subject
from bench.topic import topic

LARGE_BYTES = 1 << 30
"""Bytes that a round of large batches moves."""
FILLED_BYTES = 256 << 20
"""Bytes in each topic that is fetched; fetches start again from its beginning."""

Unit = Literal["request", "GB", "latency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    name: str
    kind: Literal["produce", "fetch", "metadata", "e2e"]
    per: Unit
    batch: Batch = ONE_RECORD
    connections: int = 1
    in_flight: int = 1
    partitions: int = 1
    topic_config: tuple[tuple[str, str], ...] = ()
    cpu_aim: float | None = None
    """The aim: the broker's CPU divided by Kafka's."""


def small(kind: Literal["produce", "metadata"]) -> Iterator[Workload]:
    text = "produce 100 B" if kind == "produce" else "metadata"
    for connections, in_flight, how, cpu_aim in (
        (1, 1, "1 connection", 0.5),
        (1, 5, "1 connection, 5 in flight", 0.5),
        (50, 1, "50 connections", 0.9 if kind == "produce" else 0.95),
    ):
        yield Workload(
            name=f"{text}, {how}",
            kind=kind,
            per="request",
            connections=connections,
            in_flight=in_flight,
            cpu_aim=cpu_aim,
        )


def large(name: str, batch: Batch) -> Iterator[Workload]:
    """With two record sizes: Kafka checks every record of a produced batch."""
    for record_bytes in (100, 1_000):
        yield Workload(
            name=f"{name} of {record_bytes:,} B records",
            kind="produce",
            per="GB",
            batch=replace(batch, record_bytes=record_bytes),
            cpu_aim=0.55,
        )


WORKLOADS = (
    *small("produce"),
    *small("metadata"),
    *large("produce 64 KB", KB_64),
    *large("produce 1 MB", MB_1),
    Workload(name="fetch 64 KB", kind="fetch", per="GB", batch=KB_64, cpu_aim=0.7),
    Workload(name="fetch 1 MB", kind="fetch", per="GB", batch=MB_1, cpu_aim=1.0),
)
END_TO_END = Workload(name="end to end, 100 records/s", kind="e2e", per="latency")


@dataclass(frozen=True, slots=True)
class Measurement:
    workload: Workload
    load: Load
    cpu_s: float

    def figures(self) -> dict[str, float]:
        """Figures by name with unit, in the order of the table."""
        done = self.load
        latency = {"p50 us": done.p50_us, "p99 us": done.p99_us}
        match self.workload.per:
            case "GB":
                return {
                    "CPU s per GB": self.cpu_s / done.bytes * 1e9,
                    "MB/s": done.bytes / done.seconds / 1e6,
                }
            case "request":
                rates = {
                    "CPU us per request": self.cpu_s / done.requests * 1e6,
                    "requests/s": done.requests / done.seconds,
                }
                lone = self.workload.connections == self.workload.in_flight == 1
                return rates | latency if lone else rates
            case "latency":
                return latency


@dataclass(slots=True)
class Bench:
    """Runs workloads on one subject; topics to fetch stay until the stack unwinds."""

    subject: Subject
    folder: Path
    stack: ExitStack
    cores: tuple[set[int], set[int]]
    """The cores of the broker, and those of the client."""
    seconds: float
    _filled: dict[Batch, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def measure(self, workload: Workload) -> Measurement:
        with self._topic(workload) as name, pinned(self.subject.pids, *self.cores):
            options = self._options(workload, self.seconds)
            if workload.kind == "produce" and workload.per == "GB":
                touch_memory(LARGE_BYTES)
            before_s = cpu_s(self.subject.pids)
            done = load(workload.kind, self.subject.port, name, **options)
            return Measurement(workload, done, cpu_s(self.subject.pids) - before_s)

    def warm(self, workloads: Sequence[Workload], for_s: float) -> None:
        """Runs all workloads in turn on all cores, so that a JIT compiles them now."""
        spent_s = 0.0
        while spent_s < for_s:
            for workload in workloads:
                with self._topic(workload) as name:
                    options = self._options(workload, for_s / len(workloads))
                    spent_s += load(workload.kind, self.subject.port, name, **options).seconds

    @contextmanager
    def _topic(self, workload: Workload) -> Iterator[str]:
        if workload.kind == "fetch":
            yield self._filled_topic(workload.batch)
        else:
            config = dict(workload.topic_config)
            with topic(self.subject.port, self._name(), workload.partitions, config) as name:
                yield name

    def _options(self, workload: Workload, seconds: float) -> dict[str, object]:
        batch = workload.batch.file(self.folder)
        options: dict[str, object] = {
            "connections": workload.connections,
            "in_flight": workload.in_flight,
            "partitions": workload.partitions,
            "batch": batch,
            "seconds": seconds,
        }
        if workload.kind == "fetch":
            options["max_bytes"] = batch.stat().st_size
        if workload.kind == "produce" and workload.per == "GB":
            options["count"] = max(1, LARGE_BYTES // batch.stat().st_size)
        return options

    def _filled_topic(self, batch: Batch) -> str:
        if batch not in self._filled:
            name = self.stack.enter_context(topic(self.subject.port, self._name()))
            file = batch.file(self.folder)
            batches = max(1, FILLED_BYTES // file.stat().st_size)
            load("produce", self.subject.port, name, batch=file, in_flight=5, count=batches)
            load(
                "fetch",
                self.subject.port,
                name,
                batch=file,
                verify=1,
                count=batches,
                max_bytes=file.stat().st_size,
            )
            self._filled[batch] = name
        return self._filled[batch]

    def _name(self) -> str:
        return f"bench-{next(self._numbers)}"
