"""The consumer protocol (KIP-848) through its two clients, and as Kafka's tools show it."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from clients.librdkafka import LibrdkafkaClient
from clients.piped import PipedClient
from clients.programs import java_program
from clients.protocol import Client, Member, Record
from peers.lines import LineProcess
from peers.penstock import PenstockBroker
from peers.tools import tool
from penstock.cli.main import main

pytestmark = pytest.mark.peer

DEADLINE_S = 30

# Much shorter intervals than in production, to keep the tests quick.
SETTINGS = {
    "group.consumer.heartbeat.interval.ms": 300,
    "group.consumer.min.heartbeat.interval.ms": 100,
}

START: dict[str, Callable[[str], Client]] = {
    "librdkafka": lambda bootstrap: LibrdkafkaClient(bootstrap, "consumer"),
    "java": lambda bootstrap: PipedClient(
        LineProcess("java", [*java_program(), bootstrap, "consumer"])
    ),
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[PenstockBroker]:
    options = [word for pair in SETTINGS.items() for word in ("--set", "=".join(map(str, pair)))]
    with PenstockBroker(*options, folder=tmp_path) as running:
        yield running


@pytest.fixture(params=START)
def start(request: pytest.FixtureRequest) -> Callable[[str], Client]:
    return START[request.param]


def settled(members: Sequence[Member], *sizes: int) -> list[set[tuple[str, int]]]:
    """Polls all members until they hold `sizes` partitions; returns their assignments."""
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        held = [member.poll().assigned for member in members]
        if [len(share) for share in held] == list(sizes):
            return held
        assert time.monotonic() < deadline_s, f"{held} is no share of {sizes}"


def read(member: Member, count: int) -> list[Record]:
    records: list[Record] = []
    deadline_s = time.monotonic() + DEADLINE_S
    while len(records) < count:
        assert time.monotonic() < deadline_s, f"{len(records)} of {count} records came"
        records += member.poll().records
    return records


def groups_tool(broker: PenstockBroker, *args: str) -> list[dict[str, str]]:
    """The rows of the table that `kafka-consumer-groups` prints."""
    printed = tool("kafka-consumer-groups", "--bootstrap-server", broker.bootstrap, *args).stdout
    head, *rows = [line.split() for line in printed.splitlines() if line.strip()]
    return [dict(zip(head, row, strict=False)) for row in rows]


def test_members_share_partitions_leave_and_find_their_offsets_after_a_restart(
    broker: PenstockBroker, start: Callable[[str], Client]
) -> None:
    with closing(start(broker.bootstrap)) as client:
        client.create_topic("t", partitions=4)
        for partition in range(4):
            client.produce("t", [Record(b"%d" % n, partition=partition) for n in range(5)])
        everything = {("t", partition) for partition in range(4)}
        first = client.join("g", "t")
        assert settled([first], 4) == [everything]
        second = client.join("g", "t")
        here, there = settled([first, second], 2, 2)
        assert here | there == everything
        second.leave()
        assert settled([first], 4) == [everything]
        for partition in range(4):
            first.commit("t", partition, 3)
        first.leave()
    broker.stop()
    broker.start()
    with closing(start(broker.bootstrap)) as client:
        member = client.join("g", "t")
        assert {record.offset for record in read(member, 8)} == {3, 4}
        member.leave()


@pytest.mark.row("A048")
def test_new_partitions_reach_the_members(
    broker: PenstockBroker, start: Callable[[str], Client]
) -> None:
    with closing(start(broker.bootstrap)) as client:
        client.create_topic("t", partitions=1)
        member = client.join("g", "t")
        settled([member], 1)
        client.create_partitions("t", 3)
        settled([member], 3)
        member.leave()


def test_the_group_tools_show_members_and_lag(broker: PenstockBroker) -> None:
    with closing(LibrdkafkaClient(broker.bootstrap, "consumer")) as client:
        client.create_topic("t", partitions=2)
        client.produce("t", [Record(b"v", partition=0)] * 5)
        member = client.join("g", "t")
        settled([member], 2)
        member.commit("t", 0, 2)

        (row, _) = sorted(groups_tool(broker, "--describe", "--group", "g"), key=str)
        reported = row["GROUP"], row["TOPIC"], row["PARTITION"], row["CURRENT-OFFSET"], row["LAG"]
        assert reported == ("g", "t", "0", "2", "3")
        (state,) = groups_tool(broker, "--describe", "--group", "g", "--state", "--verbose")
        assert state["STATE"] == "Stable"
        assert state["ASSIGNMENT-STRATEGY"] == "uniform"
        assert state["#MEMBERS"] == "1"
        (listed,) = groups_tool(broker, "--list", "--type", "--state")
        assert (listed["TYPE"], listed["STATE"]) == ("Consumer", "Stable")
        member.leave()


def test_kafka_decodes_the_records_of_a_group(broker: PenstockBroker) -> None:
    """Uses the decoder of Kafka's coordinator, which knows every field."""
    with closing(LibrdkafkaClient(broker.bootstrap, "consumer")) as client:
        client.create_topic("t", partitions=2)
        member = client.join("g", "t")
        settled([member], 2)
        member.leave()
    broker.stop()
    (log,) = (
        each for each in broker.data_dir().glob("__consumer_offsets-*/*.log") if each.stat().st_size
    )
    printed = tool("kafka-dump-log", "--offsets-decoder", "--files", str(log)).stdout
    keys = [
        json.loads(line.partition(" key: ")[2].partition(" payload: ")[0])
        for line in printed.splitlines()
        if " key: " in line
    ]
    assert {key["type"] for key in keys} >= {"3", "5", "6", "7", "8"}, printed
    payloads = [
        json.loads(line.partition(" payload: ")[2])
        for line in printed.splitlines()
        if " payload: {" in line
    ]
    names = [each["data"].get("subscribedTopicNames") for each in payloads]
    assert ["t"] in names
    shares = [each["data"].get("assignedPartitions") for each in payloads]
    assert any(share and sorted(share[0]["partitions"]) == [0, 1] for share in shares)
    ours = CliRunner().invoke(
        main, ["log", "dump", "--print-data-log", "--format", "json", str(log)]
    )
    rows = [json.loads(line) for line in ours.stdout.splitlines()]
    reported = [(each["key"], each["payload"]) for each in rows if "key" in each]
    assert [json.loads(key) for key, _ in reported] == keys
    assert [json.loads(value) for _, value in reported if value != "<DELETE>"] == payloads
