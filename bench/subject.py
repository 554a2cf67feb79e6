"""The two brokers under measurement, each in its own process and with its default settings."""

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from bench.process import resident_mb
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from peers.kafka import KafkaCluster
from peers.process import Process, wait_until

SETTINGS = {"log.segment.delete.delay.ms": 1000}
"""Topics of earlier rounds leave the disk soon, before their pages are written back."""

ONLY_WARNINGS = {"log_level": 4}
START_TIMEOUT_S = 60
READY = re.compile(r"^ready \S+:(\d+)$", re.MULTILINE)


class Subject(Protocol):
    """A broker that runs from `with` to its end."""

    name: str

    @property
    def port(self) -> int: ...

    @property
    def pids(self) -> list[int]: ...

    def restart(self) -> float:
        """Stop in good order and start again; the seconds from its start until it answers."""


class Kafka:
    name = "Kafka"

    def __init__(self, stack: ExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        # In a folder of ours it stops in good order, so that a restart has nothing to recover.
        self._cluster = stack.enter_context(
            KafkaCluster(profile="bench", settings=SETTINGS, folder=folder)
        )

    @property
    def port(self) -> int:
        return self._cluster.port(0)

    @property
    def pids(self) -> list[int]:
        return list(self._cluster.pids.values())

    def restart(self) -> float:
        self._cluster.stop(0)
        began_s = time.monotonic()
        self._cluster.start(0)
        return time.monotonic() - began_s


class Penstock:
    name = "Penstock"

    def __init__(self, stack: ExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        settings = [f"--set={name}={value}" for name, value in SETTINGS.items()]
        serve = ["-m", "penstock", "serve", "--port", "0", "--dir", str(folder / "data")]
        self._process = Process("Penstock", [sys.executable, *serve, *settings], folder)
        stack.callback(self._process.stop)
        self._starts = 0
        self._start()

    @property
    def port(self) -> int:
        return int(self._ready_lines()[-1])

    @property
    def pids(self) -> list[int]:
        return [self._process.pid]

    def restart(self) -> float:
        self._process.stop()
        return self._start()

    def _start(self) -> float:
        self._starts += 1
        began_s = time.monotonic()
        self._process.start()
        self._process.wait_until(lambda: len(self._ready_lines()) == self._starts, START_TIMEOUT_S)
        return time.monotonic() - began_s

    def _ready_lines(self) -> list[str]:
        return READY.findall(self._process.output.read_text())


@contextmanager
def topic(
    port: int, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A topic whose every partition is served, deleted at the end."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", **ONLY_WARNINGS})
    new = NewTopic(name, partitions, replication_factor=1, config=dict(config or {}))
    admin.create_topics([new])[name].result(60)
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the library types some of it
    ends = {TopicPartition(name, each): latest for each in range(partitions)}

    def served() -> bool:
        # A leader that Metadata names may not yet know that it leads.
        try:
            for answer in admin.list_offsets(ends).values():
                answer.result(10)
        except KafkaException:
            return False
        return True

    wait_until(served, 60, f"leaders of {name}")
    try:
        yield name
    finally:
        admin.delete_topics([name])[name].result(60)


def start_to_ready(subject: Subject, starts: int) -> tuple[list[float], float]:
    """The seconds of each start, and the resident MB of the idle broker after the last one."""
    took_s = [subject.restart() for _ in range(starts)]
    time.sleep(2)  # what a start leaves to the background
    return took_s, resident_mb(subject.pids)
