"""Kafka's own group tools against the broker under test."""

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from clients.brokers import GROUP_BROKERS, Target, parameters
from clients.protocol import Client, Record
from clients.settle import settled
from peers.tools import tool

pytestmark = [
    pytest.mark.peer,
    pytest.mark.parametrize("target", parameters(GROUP_BROKERS), indirect=True, scope="session"),
]

Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def run(target: Target) -> Run:
    def run(name: str, *args: str, check: bool = True) -> CompletedProcess[str]:
        return tool(name, "--bootstrap-server", target.bootstrap, *args, check=check)

    return run


@pytest.fixture
def committed(target: Target, referee: Client, topic: str) -> str:
    """A topic of two partitions with ten records each; the group of the same name is at 3 and 4."""
    referee.create_topic(topic, partitions=2, configs={"retention.ms": "-1"})
    for partition in range(2):
        referee.produce(
            topic,
            [
                Record(b"%d" % n, partition=partition, timestamp_ms=1000 * (n + 1))
                for n in range(10)
            ],
        )
    places = [TopicPartition(topic, 0, 3), TopicPartition(topic, 1, 4)]
    admin = AdminClient({"bootstrap.servers": target.bootstrap, "log_level": 0})
    wanted = [ConsumerGroupTopicPartitions(topic, places)]

    def refused() -> list[str]:
        (done,) = admin.alter_consumer_group_offsets(wanted).values()
        return [str(each.error) for each in done.result(20).topic_partitions if each.error]

    nothing: list[str] = []
    assert settled(refused, nothing) == nothing  # a new coordinator may not be ready
    return topic


def offsets(target: Target, group: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": target.bootstrap, "log_level": 0})
    (found,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {each.partition: each.offset for each in found.result(20).topic_partitions}


def rows(output: str) -> list[dict[str, str]]:
    """The table that a tool prints, as dicts by column heading."""
    lines = [line.split() for line in output.splitlines() if line.strip()]
    at = next(i for i, line in enumerate(lines) if line[0] == "GROUP")
    return [dict(zip(lines[at], line, strict=False)) for line in lines[at + 1 :]]


def objects(text: str) -> Iterator[Any]:
    """The JSON objects that Kafka's formatters print one after another."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text.rstrip()):
        found, at = decoder.raw_decode(text, at)
        yield found
        at += len(text[at:]) - len(text[at:].lstrip())


def test_groups_are_listed_with_their_state_and_type(run: Run, committed: str) -> None:
    assert committed in run("kafka-consumer-groups", "--list").stdout.split()
    listed = run("kafka-consumer-groups", "--list", "--state", "Empty", "--type", "classic")
    assert {"GROUP": committed, "TYPE": "Classic", "STATE": "Empty"} in rows(listed.stdout)
    everything = run("kafka-groups", "--list").stdout
    assert re.search(rf"^{committed}\s+Classic", everything, re.MULTILINE)


@pytest.mark.row("A136", "A160")
def test_a_description_has_offsets_and_lag(run: Run, committed: str) -> None:
    reported = run("kafka-consumer-groups", "--describe", "--group", committed)
    assert "has no active members" in reported.stderr + reported.stdout
    found = {
        (row["TOPIC"], row["PARTITION"]): (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"])
        for row in rows(reported.stdout)
    }
    assert found == {(committed, "0"): ("3", "10", "7"), (committed, "1"): ("4", "10", "6")}


@pytest.mark.row("A047")
def test_a_description_has_members_and_state(run: Run, target: Target, committed: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": target.bootstrap,
            "group.id": committed,
            "client.id": "someone",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([committed])
    while not consumer.assignment():
        consumer.poll(0.1)
    (member,) = rows(
        run("kafka-consumer-groups", "--describe", "--group", committed, "--members").stdout
    )
    assert (member["CLIENT-ID"], member["HOST"], member["#PARTITIONS"]) == (
        "someone",
        "/127.0.0.1",
        "2",
    )
    (state,) = rows(
        run("kafka-consumer-groups", "--describe", "--group", committed, "--state").stdout
    )
    assert (state["STATE"], state["#MEMBERS"]) == ("Stable", "1")
    refused = run("kafka-consumer-groups", "--delete", "--group", committed, check=False)
    assert "GroupNotEmptyException" in refused.stdout + refused.stderr
    consumer.close()


@pytest.mark.row("A044", "A137")
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (("--to-earliest",), {0: 0, 1: 0}),
        (("--to-latest",), {0: 10, 1: 10}),
        (("--to-offset", "7"), {0: 7, 1: 7}),
        (("--shift-by", "2"), {0: 5, 1: 6}),
        (("--shift-by", "-99"), {0: 0, 1: 0}),
        (("--to-current",), {0: 3, 1: 4}),
        (("--to-datetime", "1970-01-01T00:00:05.000"), {0: 4, 1: 4}),
        (("--by-duration", "P1D"), {0: 10, 1: 10}),
    ],
    ids=lambda value: value[0].strip("-") if isinstance(value, tuple) else "",
)
def test_offsets_are_reset(
    run: Run, target: Target, committed: str, how: tuple[str, ...], expected: dict[int, int]
) -> None:
    asked = ("--reset-offsets", "--group", committed, "--topic", committed, *how)
    planned = run("kafka-consumer-groups", *asked, "--dry-run")
    assert {
        int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in rows(planned.stdout)
    } == expected
    assert offsets(target, committed) == {0: 3, 1: 4}
    run("kafka-consumer-groups", *asked, "--execute")
    assert offsets(target, committed) == expected


def test_offsets_are_reset_from_a_file(
    run: Run, target: Target, committed: str, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.csv"
    with plan.open("w", newline="") as file:
        csv.writer(file).writerows([(committed, 0, 9), (committed, 1, 8)])
    asked = ("--reset-offsets", "--group", committed, "--from-file", str(plan), "--execute")
    run("kafka-consumer-groups", *asked)
    assert offsets(target, committed) == {0: 9, 1: 8}


def test_offsets_and_groups_are_deleted(run: Run, target: Target, committed: str) -> None:
    run(
        "kafka-consumer-groups",
        "--delete-offsets",
        "--group",
        committed,
        "--topic",
        f"{committed}:0",
    )
    assert offsets(target, committed) == {1: 4}
    run("kafka-consumer-groups", "--delete", "--group", committed)
    assert committed not in run("kafka-consumer-groups", "--list").stdout.split()


@pytest.mark.row("A092")
def test_kafkas_formatters_print_the_coordinators_records(
    run: Run, target: Target, committed: str
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": target.bootstrap,
            "group.id": committed,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([committed])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition(committed, 1, 5, "a note")], asynchronous=False)
    consumer.close()

    def printed(formatter: str) -> list[dict[str, Any]]:
        done = run(
            "kafka-console-consumer",
            "--topic",
            "__consumer_offsets",
            "--from-beginning",
            "--timeout-ms",
            "3000",
            "--formatter",
            f"org.apache.kafka.tools.consumer.{formatter}",
            check=False,
        )
        return [each for each in objects(done.stdout) if each["key"]["data"]["group"] == committed]

    values = {
        each["key"]["data"]["partition"]: each["value"]["data"]
        for each in printed("OffsetsMessageFormatter")
    }
    assert values[0]["offset"] == 3
    # confluent-kafka also sends the NUL after its text.
    assert (values[1]["offset"], values[1]["metadata"].rstrip("\0")) == (5, "a note")
    stable, *_, empty = [
        each["value"]["data"]
        for each in printed("GroupMetadataMessageFormatter")
        if each["value"]["data"]["protocolType"] == "consumer"
    ]
    assert stable["protocol"] == "range"
    assert len(stable["members"]) == 1
    assert (empty["members"], empty["generation"]) == ([], stable["generation"] + 1)
