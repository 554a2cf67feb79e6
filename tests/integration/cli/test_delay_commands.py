"""`penstock delay list|peek|cancel|stats`: waiting records, and cancellations that race
deliveries.
"""

import json
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.cli.failure import ExitCode
from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker

HOUR_MS = 3_600_000
_numbers = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


@pytest.fixture
def later(broker: EmbeddedBroker) -> str:
    """A unique delay topic; its target has the same name with `-to`."""
    name = f"later{next(_numbers)}"
    broker.create_topic(f"{name}-to", 1)
    broker.create_topic(name, 1, configs={"penstock.delay.to": f"{name}-to"})
    return name


def run(broker: EmbeddedBroker, *words: str) -> Result:
    return CliRunner().invoke(main, ["delay", *words, "-b", broker.bootstrap])


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def listed(broker: EmbeddedBroker, *words: str) -> list[dict[str, Any]]:
    done = run(broker, "list", *words, "--format", "json")
    assert done.exit_code == 0, done.output
    return rows(done)


def produce(broker: EmbeddedBroker, topic: str, *records: tuple[str, dict[str, str]]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for value, headers in records:
        producer.produce(topic, value.encode(), b"k-" + value.encode(), headers=dict(headers))
        producer.flush(20)


def values(broker: EmbeddedBroker, topic: str, until: bytes) -> list[bytes | None]:
    """The values of a topic up to and including `until`."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes | None] = []
    end_s = time.monotonic() + 20
    while until not in found:
        assert time.monotonic() < end_s, found
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    return found


def test_list_peek_and_stats_show_waiting_records(broker: EmbeddedBroker, later: str) -> None:
    produce(
        broker,
        later,
        ("week", {"penstock-delay-ms": str(7 * 24 * HOUR_MS)}),
        ("hour", {"penstock-delay-ms": str(HOUR_MS - 60_000)}),
        ("daily", {"penstock-schedule": "0 9 * * * Europe/Berlin"}),
        ("gone", {"penstock-delay-ms": "10"}),
    )
    assert values(broker, f"{later}-to", b"gone") == [b"gone"]
    found = listed(broker, later)
    assert {each["key"] for each in found} == {"k-week", "k-hour", "k-daily"}
    assert found == sorted(found, key=lambda each: each["due_ms"])
    assert [each["key"] for each in listed(broker, later, "--due-before", "+1h")][:1] == ["k-hour"]
    assert [each["offset"] for each in listed(broker, later, "--key", "k-week")] == [0]
    assert [each["offset"] for each in listed(broker, later, "0:1", "0:3")] == [1]
    only = listed(broker, later, "--filter", "value == 'daily'")
    assert [each["schedule"] for each in only] == ["0 9 * * * Europe/Berlin"]
    peeked = run(broker, "peek", later, "--key", "k-week", "--format", "json")
    assert [each["value"] for each in rows(peeked)] == ["week"]
    (stats,) = rows(run(broker, "stats", later, "--format", "json"))
    assert (stats["pending"], stats["schedules"], stats["overdue"]) == (3, 1, 0)
    assert stats["later"] == 1
    assert later in run(broker, "list").stdout


def test_a_cancelled_record_is_not_delivered(broker: EmbeddedBroker, later: str) -> None:
    wait = {"penstock-delay-ms": "6000"}
    produce(broker, later, ("a", wait), ("b", wait), ("c", wait), ("every", EVERY))
    dry = run(broker, "cancel", later, "0:0", "--dry-run")
    assert (dry.exit_code, "waits" in dry.stdout) == (0, True)
    done = run(broker, "cancel", later, "0:0", "--format", "json")
    assert (done.exit_code, [each["result"] for each in rows(done)]) == (0, ["cancelled"])
    assert run(broker, "cancel", later, "--filter", "value == 'b'").exit_code == 0
    assert run(broker, "cancel", later, "--key", "k-every").exit_code == 0
    assert [each["offset"] for each in listed(broker, later)] == [2]
    assert b"c" in values(broker, f"{later}-to", b"c")
    produce(broker, later, ("end", {"penstock-delay-ms": "1200"}))
    found = values(broker, f"{later}-to", b"end")
    assert found[found.index(b"c") :] == [b"c", b"end"]
    assert {b"a", b"b"}.isdisjoint(found)


EVERY = {"penstock-schedule": "every 1s"}


def test_a_record_is_either_cancelled_or_delivered(broker: EmbeddedBroker, later: str) -> None:
    """Records come due while they are cancelled: each reported outcome is what really happened."""
    produce(broker, later, ("first", {"penstock-delay-ms": "10"}))
    values(broker, f"{later}-to", b"first")
    at_ms = round(time.time() * 1000) + 100
    wait = [(f"{n}", {"penstock-deliver-at": str(at_ms + n)}) for n in range(1, 1001)]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value, headers in wait:
        producer.produce(later, value.encode(), b"k", headers=dict(headers))
    producer.flush(20)
    done = run(broker, "cancel", later, "--all", "--format", "json")
    reported: dict[str, set[int]] = {}
    for each in rows(done):
        reported.setdefault(each["result"], set()).add(each["offset"])
    produce(broker, later, ("end", {"penstock-delay-ms": "10"}))
    found = values(broker, f"{later}-to", b"end")
    delivered = [int(each or b"") for each in found if each not in {b"first", b"end"}]
    assert len(delivered) == len(set(delivered))
    assert reported.keys() <= {"cancelled", "delivered"}
    assert set(delivered) == set(range(1, 1001)) - reported.get("cancelled", set())
    assert reported.get("delivered", set()) <= set(delivered)
    assert listed(broker, later) == []


def test_cancellations_wait_for_a_service(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("unserved", 1)
    produce(broker, "unserved", ("x", {"penstock-delay-ms": str(HOUR_MS)}))
    file = tmp_path / "routes.ini"
    file.write_text("[unserved]\npenstock.delay.to = elsewhere\n")
    routes = ("unserved", "--routes", str(file))
    assert [each["key"] for each in listed(broker, *routes)] == ["k-x"]
    done = run(broker, "cancel", *routes, "--wait", "0.2", "--all", "--format", "json")
    assert [each["result"] for each in rows(done)] == ["ordered"]
    assert done.exit_code == ExitCode.FAILED
    assert listed(broker, *routes) == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("list", "events"), ExitCode.USAGE, "events is not a delay or retry topic"),
        (("peek", "events", "0-1"), ExitCode.USAGE, "'0-1' is not PARTITION:OFFSET"),
        (("cancel", "LATER"), ExitCode.USAGE, "say which records"),
        (("cancel", "LATER", "0:9"), ExitCode.USAGE, "no such record waits"),
        (("list", "LATER", "--due-before", "soon"), ExitCode.USAGE, "'soon' is not a time"),
        (("list", "LATER", "--filter", "value =="), ExitCode.USAGE, "is not CEL"),
        (("stats", "events"), ExitCode.USAGE, "events is not a delay or retry topic"),
        (("stats", "--routes", "none.ini"), ExitCode.USAGE, "none.ini"),
    ],
)
def test_bad_input_is_refused(
    broker: EmbeddedBroker, later: str, words: tuple[str, ...], code: ExitCode, message: str
) -> None:
    done = run(broker, *(later if each == "LATER" else each for each in words))
    assert (done.exit_code, message in done.output) == (code, True), done.output
