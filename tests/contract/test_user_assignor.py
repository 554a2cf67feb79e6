"""An assignor in Python, requested by name from two clients that know nothing of it."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import SOURCE, PenstockBroker
from peers.process import Process
from peers.tools import tool, tool_command

EXAMPLES = Path(__file__).parents[2] / "examples"
NAME = "active_standby"
DEADLINE_S = 30


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PenstockBroker]:
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    offered = f"group.consumer.assignors=uniform,active_standby:{NAME}"
    with PenstockBroker("--set", offered, folder=tmp_path) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("t", 4, 1)])["t"].result(20)
        yield running


def member(broker: PenstockBroker, assignor: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "group.protocol": "consumer",
            "group.remote.assignor": assignor,
            "log_level": 0,
        }
    )
    consumer.subscribe(["t"])
    return consumer


def shares(consumers: list[Consumer], *sizes: int) -> None:
    """Polls until the consumers hold `sizes` partitions."""
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        for consumer in consumers:
            consumer.poll(0.05)
        held = [len(consumer.assignment()) for consumer in consumers]
        if held == list(sizes):
            return
        assert time.monotonic() < deadline_s, held


@pytest.mark.row("A052")
def test_librdkafka_requests_the_assignor_and_other_members_stand_by(
    broker: PenstockBroker,
) -> None:
    active = member(broker, NAME)
    shares([active], 4)
    standby = member(broker, NAME)
    # The tool must list the standby as a member first: only then could it have got partitions.
    wait_for_members(broker, 2, [active, standby])
    shares([active, standby], 4, 0)
    active.close()
    shares([standby], 4)
    standby.close()


def wait_for_members(broker: PenstockBroker, count: int, polled: list[Consumer]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        for each in polled:
            each.poll(0.05)
        reported = admin.describe_consumer_groups(["g"])["g"].result(20)
        if len(reported.members) == count and reported.state.name == "STABLE":
            return
        assert time.monotonic() < deadline_s, reported.state


def test_an_unknown_assignor_name_is_refused(broker: PenstockBroker) -> None:
    consumer = member(broker, "no-such")
    message, deadline_s = None, time.monotonic() + DEADLINE_S
    while message is None:
        assert time.monotonic() < deadline_s
        message = consumer.poll(0.1)
    error = message.error()
    assert error is not None
    assert "assignor or its version range is not supported" in error.str()
    consumer.close()


@pytest.mark.peer
def test_java_requests_the_assignor_and_the_tools_show_it(
    broker: PenstockBroker, tmp_path: Path
) -> None:
    words = ["group.protocol=consumer", f"group.remote.assignor={NAME}"]
    properties = [word for each in words for word in ("--command-property", each)]
    where = ("--bootstrap-server", broker.bootstrap)
    command = tool_command(
        "kafka-console-consumer", *where, "--topic", "t", "--group", "g", *properties
    )
    java = Process("console consumer", command, tmp_path)
    java.start()
    try:
        wait_for_members(broker, 1, [])
        reported = tool(
            "kafka-consumer-groups", *where, "--describe", "--group", "g", "--state", "--verbose"
        ).stdout
        assert NAME in reported.split()
    finally:
        java.stop()


def test_a_wrong_assignor_path_stops_the_start_with_one_line(tmp_path: Path) -> None:
    wrong = "group.consumer.assignors=uniform,no_such_module:thing"
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "serve", "--dir", str(tmp_path), "--set", wrong],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "no_such_module:thing cannot be imported" in done.stderr
