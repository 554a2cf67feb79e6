"""Very many finished records behind one that hangs; `make soak` runs up to ten million."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.testing.broker import EmbeddedBroker
from support.sdk import behind
from support.sdk.waiting import wait_until

MOST_MB = 100


@contextmanager
def program(broker: EmbeddedBroker, topic: str, file: Path, how: str) -> Iterator[int]:
    command = [sys.executable, behind.__file__, broker.bootstrap, topic, str(file), how]
    with subprocess.Popen(command) as running:
        try:
            yield running.pid
        finally:
            running.kill()


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (size,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(size) / 1024


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "count",
    [30_000, *(pytest.param(each, marks=pytest.mark.soak) for each in (4_000_000, 10_000_000))],
)
def test_memory_and_repetition_stay_small(
    shared_broker: EmbeddedBroker, tmp_path: Path, count: int
) -> None:
    topic, file = f"behind-{count}", tmp_path / "handled"
    shared_broker.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": shared_broker.bootstrap, "linger.ms": 5})
    for at in range(count):
        if at % 10_000 == 0:
            producer.flush()
        producer.produce(topic, b"x", partition=0)
    producer.flush()
    reader = Consumer({"bootstrap.servers": shared_broker.bootstrap, "group.id": topic})

    def handled() -> int:
        return int(file.read_text()) if file.exists() else 0

    def committed() -> int:
        return reader.committed([TopicPartition(topic, 0)], 30)[0].offset

    patience_s = 30 + count / 2_000
    with program(shared_broker, topic, file, "hang") as pid:
        wait_until(lambda: handled() >= 1_000, "it begins")
        before_mb = memory_mb(pid)
        wait_until(lambda: handled() == count - 1, "all but one are finished", patience_s)
        grown_mb = memory_mb(pid) - before_mb
    assert committed() <= behind.HUNG
    file.unlink()
    with program(shared_broker, topic, file, "go"):
        wait_until(lambda: committed() == count, "the one that hung is finished", patience_s)
        wait_until(lambda: handled() > 0, "it has told how many it handled")
    print(f"{count:,} records: {grown_mb:.1f} MB more, {handled():,} handled after the kill")
    assert handled() <= 1_000
    assert grown_mb <= MOST_MB
    reader.close()
