"""The delay service and its commands against Apache Kafka, with routes from a file."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clients.librdkafka import LibrdkafkaClient
from clients.protocol import LATEST, Record
from clients.referee import Referee
from peers.kafka import KafkaCluster
from peers.process import wait_until
from penstock.cli.main import main

pytestmark = pytest.mark.peer

WAIT_S = 30
HOUR_MS = 3_600_000


@contextmanager
def serving(bootstrap: str, routes: Path) -> Iterator[None]:
    folder = str(routes.parent / "delay")
    command = [sys.executable, "-m", "penstock", "delay", "serve", "--folder", folder]
    command += ["--bootstrap-server", bootstrap, "--routes", str(routes), "--log-level", "warning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            process.terminate()
            assert process.wait(WAIT_S) == 0


def run(kafka: KafkaCluster, *words: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, [*words, "-b", kafka.bootstrap, "--format", "json"])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def delayed(value: bytes, ms: int) -> Record:
    return Record(value, b"k", (("penstock-delay-ms", b"%d" % ms),), partition=0)


@pytest.mark.row("A120", "A121", "A123")
def test_delay_retry_dead_letter_and_redrive(kafka: KafkaCluster, tmp_path: Path) -> None:
    client: LibrdkafkaClient = Referee(kafka.bootstrap)
    for topic in ("orders", "later", "orders-again", "orders-dead"):
        client.create_topic(topic)
    routes = tmp_path / "routes.ini"
    routes.write_text(
        "[later]\npenstock.delay.to = orders\n"
        "[orders-again]\npenstock.retry.to = orders\npenstock.retry.backoff = 200ms\n"
        "penstock.dlq.topic = orders-dead\n"
    )
    file = ("--routes", str(routes))

    def listed() -> list[dict[str, Any]]:
        return run(kafka, "dlq", "list", "orders-dead", "--error", "stock")

    def pending() -> list[int]:
        return [each["offset"] for each in run(kafka, "delay", "list", "later", *file)]

    with serving(kafka.bootstrap, routes):
        began_s = time.monotonic()
        client.produce("later", [delayed(b"week", 168 * HOUR_MS), delayed(b"soon", 700)])
        client.produce("later", [delayed(b"cancelled", HOUR_MS)])
        ((soon,),) = client.fetch("orders", 0, (0, 1))
        assert (soon.value, soon.headers) == (b"soon", ())
        assert time.monotonic() - began_s >= 0.69
        # Kafka answers the end of a transaction before consumers of committed records may read it.
        wait_until(lambda: pending() == [2, 0], WAIT_S, "the end of the delivery's transaction")
        done = run(kafka, "delay", "cancel", "later", "0:2", *file)
        assert [each["result"] for each in done] == ["cancelled"]
        assert pending() == [0]

        failed = Record(b"v", b"k", (("penstock-error", b"no stock"), ("x", b"y")), partition=0)
        client.produce("orders-again", [failed])
        wait_until(lambda: client.offset("orders", 0, LATEST) > 2, WAIT_S, "the retry")
        ((retried,),) = client.fetch("orders", 0, (2, 1))
        assert dict(retried.headers)["penstock-attempt"] == b"1"
        client.produce("orders-again", [retried])
        ((dead,),) = client.fetch("orders-dead", 0, (0, 1))
        assert dict(dead.headers)["penstock-error"] == b"gave up after 1 attempt: no stock"
        wait_until(lambda: bool(listed()), WAIT_S, "the end of the letter's transaction")
    (row,) = listed()
    assert (row["source"], row["attempt"], row["origin_topic"]) == ("retry", 1, "orders-again")
    assert run(kafka, "dlq", "redrive", "orders-dead", *file)[0]["records"] == 1
    assert run(kafka, "dlq", "redrive", "orders-dead", *file) == []
    end = client.offset("orders", 0, LATEST)
    ((back,),) = client.fetch("orders", 0, (end - 2, 1))
    assert (back.value, back.headers) == (b"v", (("x", b"y"),))
    purged = run(kafka, "dlq", "purge", "orders-dead")
    assert purged[0]["deleted"] >= 1
    client.close()
