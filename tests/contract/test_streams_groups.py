"""Kafka Streams with `group.protocol=streams` (KIP-1071), and Kafka's tools for streams groups."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contract.test_kafka_streams import App, Reader, exactly, make, reached, some_lines, write
from peers import java
from peers.lines import LineProcess
from peers.penstock import PenstockBroker
from peers.process import free_ports
from peers.tools import main_class
from support.commands.kafka_tool import call_tool

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]
SHORT_SESSIONS = {
    "group.streams.min.session.timeout.ms": "3000",
    "group.streams.session.timeout.ms": "3000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
EVERYTHING = ("--all-input-topics", "--dry-run", "--export")
OPTIONS = [part for pair in SHORT_SESSIONS.items() for part in ("--set", "=".join(pair))]


@pytest.fixture
def started() -> Iterator[Callable[[App], App]]:
    apps: list[App] = []

    def start(app: App) -> App:
        apps.append(app)
        app.start()
        return app

    yield start
    for app in apps:
        app.kill()


def counting(bootstrap: str, folder: Path, **settings: str) -> App:
    return App(
        "WordCount",
        bootstrap,
        "counting",
        folder,
        *("lines", "counts"),
        processing_guarantee="exactly_once_v2",
        group_protocol="streams",
        **settings,
    )


def test_counts_stay_exact_when_an_instance_and_the_broker_are_killed(
    tmp_path: Path, started: Callable[[App], App]
) -> None:
    lines = some_lines(2, 400)
    (port,) = free_ports(1)
    with PenstockBroker("--port", str(port), *OPTIONS, folder=tmp_path / "broker") as broker:
        make(broker.bootstrap, "lines", "counts")
        one = started(counting(broker.bootstrap, tmp_path / "one", num_stream_threads="2"))
        reader = Reader(broker.bootstrap, "counts")
        write(broker.bootstrap, "lines", lines[:100])
        reader.until(reached(lines[:20]), one)
        two = started(counting(broker.bootstrap, tmp_path / "two"))
        write(broker.bootstrap, "lines", lines[100:200])
        reader.until(reached(lines[:120]), two)
        one.kill()
        write(broker.bootstrap, "lines", lines[200:300])
        reader.until(reached(lines[:220]), two)
        broker.kill(0)
        broker.start(0)
        write(broker.bootstrap, "lines", lines[300:])
        reader.until(reached(lines), two)
        reader.close()
        assert reader.values == exactly(lines)


def test_kafkas_tool_and_ours_show_streams_groups_alike(
    tmp_path: Path, started: Callable[[App], App], tools: LineProcess
) -> None:
    lines = some_lines(3, 20)
    with PenstockBroker(*OPTIONS, folder=tmp_path / "broker") as broker:
        alike = Alike(tools, broker.bootstrap)
        make(broker.bootstrap, "lines", "counts")
        write(broker.bootstrap, "lines", lines)
        app = started(counting(broker.bootstrap, tmp_path / "app"))
        reader = Reader(broker.bootstrap, "counts")
        reader.until(reached(lines), app)
        reader.close()
        assert re.search(r"counting +Stable", alike("--list", "--state"))
        described = alike("--describe", "--group", "counting")
        assert re.search(r"counting +lines +0 ", described)
        alike("--describe", "--all-groups", "--offsets", "--verbose")
        alike("--describe", "--group", "counting", "--members", "--verbose")
        alike("--describe", "--group", "counting", "--state", "--verbose")
        alike("--delete", "--group", "counting")
        members = alike("--describe", "--group", "counting", "--members")
        assert "ACTIVE: 0:[0,1]; 1:[0,1];" in members, members
        app.process.stop()
        deadline = time.monotonic() + 30  # until the session expires
        while "Stable" in alike.ours("--list", "--state"):
            assert time.monotonic() < deadline
        alike("--describe", "--group", "counting", "--state")
        alike("--reset-offsets", "--all-groups", "--shift-by", "-2", *EVERYTHING)
        reset = alike(
            *("--reset-offsets", "--group", "counting", "--to-earliest"),
            *("--input-topic", "lines", "--execute"),
        )
        alike("--delete-offsets", "--group", "counting", "--input-topic", "none")
        assert re.search(r"counting +lines +1 +0", reset), reset
        deleted = alike.theirs("--delete", "--group", "counting")
        assert "Deletion of requested streams groups ('counting') was successful." in deleted
        assert "counting" not in alike("--list")


@pytest.fixture
def tools() -> Iterator[LineProcess]:
    with java.java_process("Tools", jars="kafka-4.3.1") as process:
        yield process


class Alike:
    """Compares the output of Kafka's `kafka-streams-groups` and ours."""

    def __init__(self, tools: LineProcess, bootstrap: str) -> None:
        self._tools, self._server = tools, ("--bootstrap-server", bootstrap)

    def theirs(self, *args: str) -> str:
        called = main_class("kafka-streams-groups", "4.3.1")
        asked = {"main": called, "args": [*self._server, *args], "stdin": ""}
        done = json.loads(self._tools.ask(json.dumps(asked), timeout_s=60))
        assert done["code"] == 0, done
        return str(done["out"])

    def ours(self, *args: str) -> str:
        done = call_tool("kafka-streams-groups.sh", *self._server, *args)
        assert (done.code, done.err) == (0, "")
        return done.out

    def __call__(self, *args: str) -> str:
        theirs = self.theirs(*args)
        assert self.ours(*args) == theirs
        return theirs


def test_the_4_4_client_is_a_static_member_and_describes_its_topology(tmp_path: Path) -> None:
    with PenstockBroker(*OPTIONS, folder=tmp_path / "broker") as broker:
        make(broker.bootstrap, "lines")
        reported = java.run("StreamsMember", broker.bootstrap, "app", "lines", jars="clients-4.4.0")
    first, second = reported.split("tasks ")[1:]
    assert first.startswith("2\n")
    assert second == first, "it had left and found everything as it was"
    assert "instance one" in first
    assert "members 1" in first
    assert "assignor sticky" in first
    assert "the-source" in first
