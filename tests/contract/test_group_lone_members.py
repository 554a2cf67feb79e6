"""Members of each client, each in its own process: killed, restarted as static members, suspended;
and which topics a pattern subscription finds.
"""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from clients.catalog import Name, Need
from clients.lone_programs import MEMBERS, lone
from peers.penstock import PenstockBroker
from peers.process import Process

pytestmark = pytest.mark.timeout(120)

DEADLINE_S = 40
QUICK = {"session.timeout.ms": 1500, "heartbeat.interval.ms": 300}
SETTINGS = ("--set", "group.min.session.timeout.ms=1000")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    with PenstockBroker(*SETTINGS, folder=tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def name(tmp_path: Path) -> str:
    """A unique name for the group, and for its topics or their prefix."""
    return tmp_path.name


def over(*needs: Need) -> pytest.MarkDecorator:
    """Run once with the members of each able client."""
    return pytest.mark.parametrize("client", lone(*needs))


class Lone:
    """A member in its own process; its output says how many partitions it holds."""

    def __init__(self, client: Name, folder: Path, *what: str) -> None:
        folder.mkdir()
        self.process = Process(client, [*MEMBERS[client](), *what], folder)
        self.process.start()

    @property
    def reported(self) -> list[int]:
        lines = self.process.output.read_text(errors="replace").splitlines()
        return [int(line) for line in lines if line.isdigit()]

    def holds(self, count: int) -> None:
        """Waits for this count; fails with the member's last output if its process ends."""
        self.process.wait_until(lambda: self.reported[-1:] == [count], DEADLINE_S)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)


class Members:
    """Starts members of one group."""

    def __init__(
        self, client: Name, broker: PenstockBroker, group: str, folder: Path, stack: ExitStack
    ) -> None:
        self._client, self._bootstrap, self._group = client, broker.bootstrap, group
        self._folder, self._stack, self._count = folder, stack, 0

    def start(self, topic: str, **more: Any) -> Lone:
        self._count += 1
        folder = self._folder / f"member-{self._count}"
        settings = json.dumps({**QUICK, **more})
        lone = Lone(self._client, folder, self._bootstrap, self._group, topic, settings)
        self._stack.callback(lone.process.kill)
        return lone


@pytest.fixture
def members(client: Name, broker: PenstockBroker, name: str, tmp_path: Path) -> Iterator[Members]:
    with ExitStack() as stack:
        yield Members(client, broker, name, tmp_path, stack)


def create(broker: PenstockBroker, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)


@pytest.fixture
def topic(broker: PenstockBroker, name: str) -> str:
    """A topic with four partitions."""
    create(broker, name, 4)
    return name


@pytest.mark.row("A048", "A054")
@over()
def test_partitions_of_a_killed_member_go_to_the_other(members: Members, topic: str) -> None:
    stays, dies = members.start(topic), members.start(topic)
    stays.holds(2)
    dies.holds(2)
    dies.signal(signal.SIGKILL)
    stays.holds(4)


@pytest.mark.row("A056", "A153")
@over("static member")
def test_a_static_member_that_is_killed_and_restarted_causes_no_reassignment(
    members: Members, topic: str
) -> None:
    # So long that a new member instead of the static one would wait beyond this test's deadline.
    longer: dict[str, Any] = {"session.timeout.ms": (DEADLINE_S + 5) * 1000}
    named: dict[str, Any] = {**longer, "group.instance.id": "comes-back"}
    stays = members.start(topic, **{**longer, "group.instance.id": "stays"})
    comes_back = members.start(topic, **named)
    stays.holds(2)
    comes_back.holds(2)
    before = stays.reported
    comes_back.signal(signal.SIGKILL)
    members.start(topic, **named).holds(2)
    assert stays.reported == before


@pytest.mark.row("A055")
@over()
def test_a_suspended_member_loses_its_partitions_and_gets_them_back(
    members: Members, topic: str
) -> None:
    busy, still = members.start(topic), members.start(topic)
    busy.holds(2)
    still.holds(2)
    still.signal(signal.SIGSTOP)
    busy.holds(4)
    still.signal(signal.SIGCONT)
    busy.holds(2)
    still.holds(2)


@pytest.mark.row("A035", "A048")
@over("expression", "later topics")
def test_a_pattern_subscription_finds_topics_created_later(
    client: Name, broker: PenstockBroker, members: Members, name: str
) -> None:
    refresh = (
        "topic.metadata.refresh.interval.ms" if client == "librdkafka" else "metadata.max.age.ms"
    )
    often: dict[str, Any] = {refresh: 500}
    create(broker, f"{name}-a", 1)
    member = members.start(f"^{name}-.*", **often)
    member.holds(1)
    create(broker, f"{name}-b", 2)
    member.holds(3)


FIXED = sorted(set(lone("expression")) - set(lone("later topics")))


@pytest.mark.parametrize("client", FIXED)
def test_a_pattern_subscription_finds_existing_topics(
    broker: PenstockBroker, members: Members, name: str
) -> None:
    create(broker, f"{name}-a", 1)
    create(broker, f"{name}-b", 2)
    members.start(f"^{name}-.*").holds(3)
