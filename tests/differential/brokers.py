"""The brokers that are compared: started with the same settings, in memory where possible."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from differential.subject import Subject
from peers.kafka import KafkaCluster
from peers.process import Process

SETTINGS: Mapping[str, object] = {
    "num.partitions": 2,
    "offsets.topic.num.partitions": 5,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.share.assignment.interval.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
}
"""Settings of both brokers where the defaults would hide a difference."""

MEMORY = Path("/dev/shm")  # on a disk, a thousand new partitions are a thousand fsyncs


@contextmanager
def kafka() -> Iterator[Subject]:
    """A separate cluster: the one that other tests share contains their topics."""
    # Otherwise the controller waits 25 ms to batch the writes of new topics.
    settings = {**SETTINGS, "controller.quorum.append.linger.ms": 0}
    with _folder() as folder, KafkaCluster(settings=settings, folder=folder) as cluster:
        yield Subject(cluster.port(0))
        cluster.kill(0)


@contextmanager
def penstock() -> Iterator[Subject]:
    with _folder() as folder:
        settings = {**SETTINGS, "broker.id": 0}
        pairs = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        command = [sys.executable, "-m", "penstock", "serve", "--port", "0", "--dir", str(folder)]
        process = Process("penstock", [*command, *pairs], folder)
        process.start()
        try:
            process.wait_until(lambda: _ready(process.output) is not None, timeout_s=30)
            port = _ready(process.output)
            assert port is not None
            yield Subject(port)
        finally:
            process.stop()


def _ready(output: Path) -> int | None:
    lines = output.read_text(errors="replace").splitlines(keepends=True)
    return next(
        (
            int(line.rpartition(":")[2])
            for line in lines
            if line.startswith("ready ") and line.endswith("\n")
        ),
        None,
    )


@contextmanager
def _folder() -> Iterator[Path]:
    parent = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="penstock-", dir=parent) as name:
        yield Path(name)


Start = Callable[[], AbstractContextManager[Subject]]

SUBJECTS: dict[str, Start] = {"penstock": penstock, "kafka": kafka}
SUBJECT = os.environ.get("PENSTOCK_COMPARED", "penstock")
"""The broker compared with Kafka. `kafka` itself shows which answers vary by chance."""
