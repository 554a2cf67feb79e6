"""Python's clients, each member in its own process: killed, restarted as a static one, stopped;
and what an expression finds.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from clients.lone_member import LIBRARIES
from peers.penstock import PenstockBroker
from peers.process import Process, wait_until

pytestmark = pytest.mark.timeout(120)

TESTS = Path(__file__).parents[1]
DEADLINE_S = 40
QUICK = {"session.timeout.ms": 1500, "heartbeat.interval.ms": 300}
SETTINGS = ("--set", "group.min.session.timeout.ms=1000")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[PenstockBroker]:
    with PenstockBroker(*SETTINGS, folder=tmp_path) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("t", 4, 1)])["t"].result(20)
        yield running


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


class Lone:
    """A member by its process; what it printed says what it holds."""

    def __init__(self, library: str, bootstrap: str, folder: Path, topic: str, **more: Any) -> None:
        folder.mkdir()
        settings = json.dumps({**QUICK, **more})
        # Not by its file: beside it lie modules that are named after the libraries.
        program = ["env", f"PYTHONPATH={TESTS}", sys.executable, "-m", "clients.lone_member"]
        command = [*program, library, bootstrap, "g", topic, settings]
        self.process = Process(library, command, folder)
        self.process.start()

    @property
    def told(self) -> list[int]:
        lines = self.process.output.read_text(errors="replace").splitlines()
        return [int(line) for line in lines if line.isdigit()]

    def holds(self, count: int) -> None:
        wait_until(lambda: self.told[-1:] == [count], DEADLINE_S, f"{count} partitions")

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)


@pytest.fixture
def members(library: str, broker: PenstockBroker, tmp_path: Path) -> Iterator["Members"]:
    with ExitStack() as stack:
        yield Members(library, broker.bootstrap, tmp_path, stack)


class Members:
    def __init__(self, library: str, bootstrap: str, folder: Path, stack: ExitStack) -> None:
        self._library, self._bootstrap, self._folder = library, bootstrap, folder
        self._stack, self._count = stack, 0

    def start(self, topic: str = "t", **more: Any) -> Lone:
        self._count += 1
        folder = self._folder / f"member-{self._count}"
        lone = Lone(self._library, self._bootstrap, folder, topic, **more)
        self._stack.callback(lone.process.kill)
        return lone


def test_what_a_killed_member_had_goes_to_the_other(members: Members) -> None:
    stays, dies = members.start(), members.start()
    stays.holds(2)
    dies.holds(2)
    dies.signal(signal.SIGKILL)
    stays.holds(4)


def test_a_static_member_that_is_killed_and_restarted_moves_nothing(members: Members) -> None:
    longer: dict[str, Any] = {"session.timeout.ms": 20_000}
    named: dict[str, Any] = {**longer, "group.instance.id": "comes-back"}
    stays = members.start(**{**longer, "group.instance.id": "stays"})
    comes_back = members.start(**named)
    stays.holds(2)
    comes_back.holds(2)
    before = stays.told
    comes_back.signal(signal.SIGKILL)
    members.start(**named).holds(2)
    assert stays.told == before


def test_a_member_that_stands_still_loses_its_partitions_and_gets_them_back(
    members: Members,
) -> None:
    busy, still = members.start(), members.start()
    busy.holds(2)
    still.holds(2)
    still.signal(signal.SIGSTOP)
    busy.holds(4)
    still.signal(signal.SIGCONT)
    busy.holds(2)
    still.holds(2)


REFRESH = {
    "librdkafka": "topic.metadata.refresh.interval.ms",
    "kafka-python": "metadata.max.age.ms",
    "aiokafka": "metadata.max.age.ms",
}


def test_an_expression_finds_topics_that_come_later(
    library: str, broker: PenstockBroker, members: Members
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("logs-a", 1, 1)])["logs-a"].result(20)
    often: dict[str, Any] = {REFRESH[library]: 500}
    member = members.start("^logs-.*", **often)
    member.holds(1)
    admin.create_topics([NewTopic("logs-b", 2, 1)])["logs-b"].result(20)
    member.holds(3)
