"""At most once, at least once, exactly once: each with the failure that distinguishes it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from clients.referee import Referee
from peers.penstock import SOURCE, PenstockBroker
from peers.process import wait_until
from support.brokers.lossy_link import Loss, LossyLink

EXAMPLES = Path(__file__).parents[2] / "examples"
WAIT_S = 60
RECORDS = [f"record {number}" for number in range(10)]

PRODUCERS: dict[str, dict[str, str | int | bool]] = {
    "at most once": {"acks": 0, "retries": 0},
    "at least once": {"acks": "all", "enable.idempotence": False},
    "exactly once": {"acks": "all", "enable.idempotence": True},
}


@pytest.fixture(scope="module")
def broker() -> Iterator[PenstockBroker]:
    with PenstockBroker("--set=group.initial.rebalance.delay.ms=0") as penstock:
        yield penstock


@pytest.fixture
def source(broker: PenstockBroker, topic: str) -> str:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in RECORDS:
        producer.produce(topic, value, partition=0)
    assert producer.flush(WAIT_S) == 0
    return topic


def seen(bootstrap: str, topic: str) -> list[str]:
    """What a read_committed consumer sees of partition 0 up to its end."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    while (message := reader.poll(WAIT_S)) is not None and not message.error():
        found.append((message.value() or b"").decode())
    reader.close()
    assert message is not None
    return found


@pytest.mark.row("A023", "A108", "A115", "A118")
@pytest.mark.parametrize(
    ("guarantee", "lost", "copies"),
    [
        ("at most once", "request", 0),
        ("at least once", "request", 1),
        ("at least once", "answer", 2),
        ("exactly once", "request", 1),
        ("exactly once", "answer", 1),
    ],
)
def test_a_lost_request_or_response_follows_the_guarantee(
    guarantee: str, lost: Loss, copies: int, topic: str
) -> None:
    with LossyLink() as link:
        advertised = f"--set=advertised.listeners=PLAINTEXT://{link.address}"
        with PenstockBroker(advertised, "--port", str(link.broker_port)):
            Referee(link.address).create_topic(topic)
            producer = Producer(
                {
                    "bootstrap.servers": link.address,
                    "retry.backoff.ms": 50,
                    "log_level": 0,
                    **PRODUCERS[guarantee],
                }
            )
            producer.produce(topic, "before", partition=0)
            assert producer.flush(WAIT_S) == 0
            # Without acks the first record may still be in flight, and would be lost instead of the
            # next.
            wait_until(lambda: seen(link.address, topic) == ["before"], WAIT_S, "the first")
            link.lose(lost)
            producer.produce(topic, "told apart", partition=0)
            assert producer.flush(WAIT_S) == 0
            assert link.lost.wait(WAIT_S)
            # Without acks, only reading a record shows that it has arrived.
            deadline_s = time.monotonic() + WAIT_S
            found: list[str] = []
            while "behind" not in found:
                assert time.monotonic() < deadline_s
                producer.produce(topic, "behind", partition=0)
                assert producer.flush(WAIT_S) == 0
                found = seen(link.address, topic)
            assert found.count("told apart") == copies
            del producer


def copy(bootstrap: str, guarantee: str, source: str, *options: str) -> int:
    """Runs the example over all records that are not copied yet."""
    done = subprocess.run(
        [
            *(sys.executable, str(EXAMPLES / "delivery_guarantees.py"), guarantee),
            *(source, f"{source}-copy", "--bootstrap", bootstrap, "--group", source, *options),
        ],
        timeout=WAIT_S,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


@pytest.mark.row("A043", "A115", "A155")
@pytest.mark.parametrize(
    ("guarantee", "copies"), [("at-most-once", 0), ("at-least-once", 2), ("exactly-once", 1)]
)
def test_a_crash_between_result_and_position_follows_the_guarantee(
    guarantee: str, copies: int, broker: PenstockBroker, source: str
) -> None:
    assert copy(broker.bootstrap, guarantee, source, "--crash-at", "5") == -signal.SIGKILL
    assert copy(broker.bootstrap, guarantee, source) == 0
    found = seen(broker.bootstrap, f"{source}-copy")
    wanted = [value.upper() for value in RECORDS]
    assert [found.count(value) for value in wanted] == [
        copies if number == 4 else 1 for number in range(10)
    ]
    assert list(dict.fromkeys(found)) == [value for value in wanted if value in found]


def test_the_example_reports_an_error_in_one_line(broker: PenstockBroker) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "delivery_guarantees.py"), "twice", "a", "b"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "at-most-once" in done.stderr
    assert broker.running
