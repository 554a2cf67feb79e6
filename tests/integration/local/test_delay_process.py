"""`penstock serve` delivers delayed records by itself, even after its service was killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import PenstockBroker
from peers.process import wait_until
from penstock.retry.address_file import read_address
from penstock.testing.broker import EmbeddedBroker

WAIT_S = 20


def services(directory: Path) -> list[int]:
    """The processes that keep their index in this directory."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"delay" in words and any(str(directory).encode() in word for word in words):
            found.append(int(each.parent.name))
    return found


@pytest.mark.row("A120", "A121", "A123")
@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["broker", "workers"])
def test_delayed_and_retried_records_arrive_at_any_client(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    with PenstockBroker(*options, folder=tmp_path) as broker:
        config: dict[str, Any] = {"bootstrap.servers": broker.bootstrap}
        admin = AdminClient(config)
        topics = [
            NewTopic("orders", 2),
            NewTopic("later", 2, config={"penstock.delay.to": "orders"}),
            NewTopic(
                "again",
                2,
                config={"penstock.retry.to": "orders", "penstock.retry.backoff": "100ms"},
            ),
        ]
        for made in admin.create_topics(topics).values():
            made.result()
        wait_until(lambda: len(services(tmp_path)) == 1, WAIT_S, "the delay service")
        producer = Producer(config)
        week = str(7 * 86_400_000)
        producer.produce("later", b"week", b"k", headers={"penstock-delay-ms": week})
        producer.produce("later", b"soon", b"k", headers={"penstock-delay-ms": "300"})
        producer.flush(WAIT_S)
        os.kill(services(tmp_path)[0], signal.SIGKILL)
        producer.produce("later", b"after", b"k", headers={"penstock-delay-ms": "400"})
        producer.produce("again", b"once", b"k")
        producer.produce("again", b"twice", b"k", headers={"penstock-attempt": "1"})
        producer.flush(WAIT_S)
        consumer = Consumer(
            {
                **config,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 300,  # again.dlq is created later
            }
        )
        consumer.subscribe(["orders", "again.dlq"])
        values: list[tuple[str | None, bytes | None]] = []
        end_s = time.monotonic() + 2 * WAIT_S
        while len(values) < 4 and time.monotonic() < end_s:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                values.append((message.topic(), message.value()))
        consumer.close()
        assert set(values) == {
            ("again.dlq", b"twice"),
            ("orders", b"after"),
            ("orders", b"once"),
            ("orders", b"soon"),
        }
        assert len(values) == 4
    wait_until(lambda: services(tmp_path) == [], WAIT_S, "the delay service to end")


def test_the_service_runs_as_a_separate_command(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        command = ["delay", "serve", "--bootstrap-server", broker.bootstrap]
        with subprocess.Popen(
            [sys.executable, "-m", "penstock", *command, "--folder", str(tmp_path)],
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            address = read_address(tmp_path)
            assert address is not None
            for page, says in (("readyz", b"OK"), ("metrics", b"penstock_delay_store_up 1")):
                with urlopen(f"http://{address}/{page}") as answer:
                    assert says in answer.read()
            process.terminate()
            assert process.wait(WAIT_S) == 0
