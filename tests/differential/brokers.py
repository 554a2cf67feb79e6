"""The brokers that are compared: started with the same settings, on memory where there is some."""

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
"""Of both, where the default would hide a difference."""

MEMORY = Path("/dev/shm")  # a thousand new partitions are a thousand fsyncs elsewhere


@contextmanager
def kafka() -> Iterator[Subject]:
    """A cluster of our own: the one that other tests share holds what they left in it."""
    # The controller otherwise waits 25 ms for company before it writes a new topic.
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
"""What is compared with Kafka. `kafka` itself shows which answers are a matter of chance."""
