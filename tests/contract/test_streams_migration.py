"""A Kafka Streams application migrates to the streams protocol and back, instance by instance."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contract.test_kafka_streams import App, Reader, exactly, make, reached, some_lines, write
from peers.penstock import PenstockBroker
from penstock.wire.messages.streams_group_describe import (
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from support.brokers.wire_link import WireLink

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]
OPTIONS = [
    *("--set", "offsets.topic.num.partitions=1"),
    *("--set", "transaction.state.log.num.partitions=1"),
]
SETTLED_S = 30


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


def counting(bootstrap: str, folder: Path, protocol: str) -> App:
    return App(
        "WordCount",
        bootstrap,
        "counting",
        folder,
        *("lines", "counts"),
        processing_guarantee="exactly_once_v2",
        group_protocol=protocol,
        consumer_heartbeat_interval_ms="500",
        transaction_timeout_ms="3000",
        # A classic member rebalances for ever unless its assignment contains its endpoint.
        application_server=f"{folder.name}:80",
    )


def settled(broker: PenstockBroker, *classic: bool) -> None:
    """Waits until the group is stable and the members of each protocol have tasks; `classic` has
    one flag per member.
    """
    deadline = time.monotonic() + SETTLED_S
    with WireLink(broker.bootstrap) as link:
        while True:
            reported = link.ask(StreamsGroupDescribeRequest(["counting"]))
            assert isinstance(reported, StreamsGroupDescribeResponse)
            (group,) = reported.groups
            having = sorted(each.is_classic for each in group.members if tasks(each))
            if having == sorted(classic) and group.group_state == "Stable":
                return
            assert time.monotonic() < deadline, group


def tasks(member: Member) -> int:
    return sum(len(each.partitions) for each in member.assignment.active_tasks)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("classic", "streams"),
        pytest.param("streams", "classic", marks=pytest.mark.soak),
    ],
)
def test_instances_are_restarted_one_by_one_and_counts_stay_exact(
    tmp_path: Path, started: Callable[[App], App], before: str, after: str
) -> None:
    lines = some_lines(4, 400)
    with PenstockBroker(*OPTIONS, folder=tmp_path / "broker") as broker:
        make(broker.bootstrap, "lines", "counts")
        old_one = started(counting(broker.bootstrap, tmp_path / "one", before))
        old_two = started(counting(broker.bootstrap, tmp_path / "two", before))
        reader = Reader(broker.bootstrap, "counts")
        write(broker.bootstrap, "lines", lines[:100])
        reader.until(reached(lines[:100]), old_two)
        old_one.kill()
        write(broker.bootstrap, "lines", lines[100:150])
        new_one = started(counting(broker.bootstrap, tmp_path / "one", after))
        settled(broker, True, False)
        write(broker.bootstrap, "lines", lines[150:250])
        reader.until(reached(lines[:250]), new_one)
        old_two.kill()
        write(broker.bootstrap, "lines", lines[250:300])
        new_two = started(counting(broker.bootstrap, tmp_path / "two", after))
        if after == "streams":
            settled(broker, False, False)
        write(broker.bootstrap, "lines", lines[300:])
        reader.until(reached(lines), new_two)
        reader.close()
        assert reader.values == exactly(lines)
