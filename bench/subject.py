"""The two brokers under measurement, each in its own process and with its default settings."""

import re
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from bench.process import resident_mb

import penstock
from peers.kafka import KafkaCluster
from peers.process import Process

SETTINGS = {"log.segment.delete.delay.ms": 1000}
"""Deleted topics of earlier rounds leave the disk soon, before their pages are written back."""

START_TIMEOUT_S = 60
READY = re.compile(r"^ready \S+:(\d+)$", re.MULTILINE)


class Subject(Protocol):
    """A broker that runs until the ExitStack of its constructor unwinds."""

    name: str

    @property
    def port(self) -> int: ...

    @property
    def pids(self) -> list[int]: ...

    def restart(self) -> float:
        """Stops cleanly and starts again; returns the seconds from the start until it answers."""


class Kafka:
    name = "Kafka"

    def __init__(self, stack: ExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        # With a folder given, it stops cleanly, so that a restart has nothing to recover.
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
        self.directory = folder / "data"
        serve = ["-m", "penstock", "serve", "--port", "0", "--dir", str(self.directory)]
        # The process imports the same package as this bench, whatever its working directory.
        python = ["env", f"PYTHONPATH={Path(penstock.__file__).parents[1]}", sys.executable]
        self._process = Process("Penstock", [*python, *serve, *settings], folder)
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


def start_to_ready(subject: Subject, starts: int) -> tuple[list[float], float]:
    """The seconds of each start, and the idle broker's resident MB after the last one."""
    took_s = [subject.restart() for _ in range(starts)]
    time.sleep(2)  # a start leaves some work to the background
    return took_s, resident_mb(subject.pids)
