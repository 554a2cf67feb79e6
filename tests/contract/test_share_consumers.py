"""Unmodified share consumers, and Kafka's tools for share groups."""

import json
import re
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from peers.tools import tool
from penstock.testing.broker import EmbeddedBroker
from support.commands.kafka_tool import call_tool

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 100}
RECORDS = 400
WAIT_S = 90


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings={"group.share.min.record.lock.duration.ms": "1000"}) as running:
        yield running


def prepared(bootstrap: str, name: str, partitions: int, copies: int = 1) -> None:
    """Creates a topic, and a group of the same name that starts at the first record."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.create_topics([NewTopic(name, partitions, copies)])[name].result(WAIT_S)
    earliest = ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
    )
    wanted = ConfigResource(ResourceType.GROUP, name, incremental_configs=[earliest])
    for done in admin.incremental_alter_configs([wanted]).values():
        done.result(WAIT_S)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
    for number in range(RECORDS):
        producer.produce(name, b"%d" % number, partition=number % partitions)
    assert producer.flush(WAIT_S) == 0


def test_librdkafkas_share_consumers_share_a_partition(broker: EmbeddedBroker) -> None:
    prepared(broker.bootstrap, "shared", 1)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "shared", **QUIET}
    consumers = [ShareConsumer({**settings, "max.poll.records": 50}) for _ in range(2)]
    found: list[bytes] = []
    until = time.monotonic() + WAIT_S
    for each in consumers:
        each.subscribe(["shared"])
    while len(found) < RECORDS and time.monotonic() < until:
        for each in consumers:
            found += [record.value() or b"" for record in each.poll(timeout=0.2)]
    for each in consumers:
        each.commit_sync()
        each.close()
    assert sorted(found, key=int) == [b"%d" % number for number in range(RECORDS)]


def test_librdkafka_accepts_releases_and_rejects(broker: EmbeddedBroker) -> None:
    """The value modulo three decides; only released records come again, with a higher delivery
    count.
    """
    prepared(broker.bootstrap, "explicit", 2)
    kinds = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "explicit",
        "share.acknowledgement.mode": "explicit",
        **QUIET,
    }
    until = time.monotonic() + WAIT_S
    seen: dict[int, int] = {}
    consumer = ShareConsumer(settings)
    consumer.subscribe(["explicit"])
    while len(seen) < RECORDS and time.monotonic() < until:
        for record in consumer.poll(timeout=0.2):
            number = int(record.value() or b"")
            is_first = number not in seen
            seen[number] = seen.get(number, 0) + 1
            consumer.acknowledge(record, kinds[number % 3] if is_first else kinds[1])
        assert not any(consumer.commit_sync().values())
    consumer.close()
    assert sorted(seen) == list(range(RECORDS))
    released = [number for number in seen if number % 3 == 1]
    again: list[int] = []
    consumer = ShareConsumer(settings)
    consumer.subscribe(["explicit"])
    while len(again) < len(released) and time.monotonic() < until:
        for record in consumer.poll(timeout=0.2):
            again.append(int(record.value() or b""))
            assert (record.delivery_count() or 0) > 1
            consumer.acknowledge(record, AcknowledgeType.ACCEPT)
        assert not any(consumer.commit_sync().values())
    consumer.close()
    assert sorted(again) == sorted(released)
    described = call_tool(
        "kafka-share-groups.sh",
        *("--bootstrap-server", broker.bootstrap, "--describe", "--group", "explicit"),
    )
    assert [line.split()[-1] for line in described.out.splitlines()[2:]] == ["0", "0"]


def test_kafkas_performance_test_reads_all(broker: EmbeddedBroker) -> None:
    prepared(broker.bootstrap, "perf", 2)
    printed = tool(
        "kafka-share-consumer-perf-test",
        *("--bootstrap-server", broker.bootstrap, "--topic", "perf", "--group", "perf"),
        *("--num-records", str(RECORDS), "--timeout", "30000"),
    ).stdout
    header, row = printed.splitlines()
    figures = dict(zip(header.split(", "), row.split(", "), strict=True))
    assert figures["data.consumed.in.nMsg"] == str(RECORDS)


def test_kafkas_verifiable_consumer_acknowledges_all(broker: EmbeddedBroker) -> None:
    prepared(broker.bootstrap, "verified", 2)
    printed = tool(
        "kafka-verifiable-share-consumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", "verified", "--verbose"),
        *("--group-id", "verified", "--max-messages", str(RECORDS)),
        *("--acknowledgement-mode", "sync"),
    ).stdout
    events = [json.loads(line) for line in printed.splitlines()]
    values = [int(each["value"]) for each in events if each["name"] == "record_data"]
    assert sorted(values) == list(range(RECORDS))
    reported = [each for each in events if each["name"] == "offsets_acknowledged"]
    assert sum(each["count"] for each in reported) == RECORDS
    assert not [each for each in reported if each.get("error")]
    assert events[-1]["name"] == "shutdown_complete"


def test_kafkas_tools_read_describe_reset_and_delete(broker: EmbeddedBroker) -> None:
    prepared(broker.bootstrap, "tools", 2)

    def run(name: str, *args: str) -> str:
        done = tool(name, "--bootstrap-server", broker.bootstrap, *args)
        return done.stdout + done.stderr

    def read(count: int) -> list[int]:
        printed = run(
            "kafka-console-share-consumer", "--topic", "tools", "--group", "tools",
            "--max-messages", str(count), "--timeout-ms", "20000",
        )  # fmt: skip
        return sorted(int(line) for line in printed.splitlines() if line.isdigit())

    assert read(RECORDS) == list(range(RECORDS))
    assert "tools" in run("kafka-share-groups", "--list").split()
    described = run("kafka-share-groups", "--describe", "--group", "tools")
    half = RECORDS // 2
    assert re.findall(r"tools\s+tools\s+(\d)\s+(\d+)\s+(\d+)", described) == [
        ("0", f"{half}", "0"),
        ("1", f"{half}", "0"),
    ]
    run(
        "kafka-share-groups", "--group", "tools", "--topic", "tools", "--reset-offsets",
        "--to-earliest", "--execute",
    )  # fmt: skip
    assert read(RECORDS) == list(range(RECORDS))
    assert "successful" in run("kafka-share-groups", "--delete", "--group", "tools")
    assert "tools" not in run("kafka-share-groups", "--list").split()


def test_another_broker_may_coordinate_the_share_groups_state() -> None:
    """Both workers lead partitions of the topic, and of the topic that holds the share group's
    state.
    """
    with EmbeddedBroker(workers=2) as broker:
        prepared(broker.bootstrap, "spread", 4)
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": "spread", **QUIET}
        found: list[bytes] = []
        for _ in range(2):  # the second consumer does not get what the first one acknowledged
            consumer = ShareConsumer({**settings, "max.poll.records": 50})
            consumer.subscribe(["spread"])
            until = time.monotonic() + WAIT_S / 2
            share = len(found) + RECORDS // 2
            while len(found) < min(share, RECORDS) and time.monotonic() < until:
                found += [record.value() or b"" for record in consumer.poll(timeout=0.5)]
                assert not any(consumer.commit_sync().values())
            consumer.close()
    assert sorted(found, key=int) == [b"%d" % number for number in range(RECORDS)]
