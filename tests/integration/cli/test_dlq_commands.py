"""`penstock dlq list|peek|redrive|purge`: dead letters of any writer, redriven exactly once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from penstock.cli.failure import ExitCode
from penstock.cli.main import main
from penstock.record.dead_letter import DeadLetter, share_letter_headers
from penstock.testing.broker import EmbeddedBroker

_numbers = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


@pytest.fixture
def name(broker: EmbeddedBroker) -> str:
    """A topic with two partitions, whose dead letters are in `<name>.dlq`."""
    name = f"orders{next(_numbers)}"
    broker.create_topic(name, 2)
    broker.create_topic(f"{name}.dlq", 2)
    return name


def run(broker: EmbeddedBroker, *words: str, typed: str = "") -> Result:
    return CliRunner().invoke(main, ["dlq", *words, "-b", broker.bootstrap], input=typed)


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code in {0, ExitCode.PARTLY_DONE}, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def listed(broker: EmbeddedBroker, *words: str) -> list[dict[str, Any]]:
    return rows(run(broker, "list", *words, "--format", "json"))


def produce(
    broker: EmbeddedBroker, topic: str, *records: tuple[bytes, Mapping[str, str], int]
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value, headers, partition in records:
        producer.produce(topic, value, b"k" + value, headers=dict(headers), partition=partition)
    producer.flush(20)


def ours(topic: str | None, partition: int = 0, error: str = "no stock") -> dict[str, str]:
    origin = {} if topic is None else {"penstock-origin-topic": topic}
    place = {"penstock-origin-partition": str(partition), "penstock-origin-offset": "7"}
    return {"penstock-error": error, "penstock-attempt": "4", **origin, **place, "trace": "1"}


def read(broker: EmbeddedBroker, topic: str, partitions: int = 2) -> list[Message]:
    """All committed records of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
    found, ended = [], 0
    while ended < partitions:
        message = consumer.poll(20)
        assert message is not None
        if message.error() is None:
            found.append(message)
        else:
            ended += 1
    consumer.close()
    return found


def written(broker: EmbeddedBroker, topic: str) -> int:
    """The end offsets of both partitions together, including open transactions."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, each), 20) for each in range(2)]
    consumer.close()
    assert None not in ends
    return sum(each[1] for each in ends if each is not None)


def headers_of(message: Message) -> dict[str, bytes | str | None]:
    return dict(message.headers() or [])


def test_dead_letters_with_every_header_vocabulary_go_back_to_their_origin(
    broker: EmbeddedBroker, name: str
) -> None:
    former = {
        "penstock.reason": "bad json",
        "penstock.pipeline": "clicks",
        "penstock.topic": name,
        "penstock.partition": "1",
        "penstock.offset": "3",
    }
    share = {
        "__dlq.errors.topic": name,
        "__dlq.errors.partition": "1",
        "__dlq.errors.offset": "9",
        "__dlq.errors.group": "billing",
        "__dlq.errors.delivery.count": "5",
        "__dlq.errors.message": "Offset rejected by client.",
    }
    letters = f"{name}.dlq"
    produce(broker, letters, (b"new", ours(name, 1), 0), (b"old", former, 0), (b"share", share, 1))
    found = listed(broker, letters)
    assert [each["source"] for each in found] == ["", "spark:clicks", "share"]
    assert [each["origin_offset"] for each in found] == [7, 3, 9]
    assert {each["origin_topic"] for each in found} == {name}
    assert [each["offset"] for each in listed(broker, letters, "--error", "JSON")] == [1]
    peeked = rows(run(broker, "peek", letters, "1:0", "--format", "json"))
    assert [each["value"] for each in peeked] == ["share"]
    dry = rows(run(broker, "redrive", letters, "--dry-run", "--format", "json"))
    assert dry == [{"to": name, "records": 3, "done": False}]
    assert rows(run(broker, "redrive", letters, "--format", "json"))[0]["records"] == 3
    back = read(broker, name)
    assert {each.value() for each in back} == {b"new", b"old", b"share"}
    assert {each.partition() for each in back} == {1}
    assert [headers_of(each) for each in back if each.value() == b"new"] == [{"trace": b"1"}]
    assert all(headers_of(each) in ({}, {"trace": b"1"}) for each in back)
    assert listed(broker, letters) == []
    assert {each["state"] for each in listed(broker, letters, "--all")} == {"redriven"}
    assert rows(run(broker, "redrive", letters, "--format", "json")) == []
    assert letters in run(broker, "list").stdout


def test_dead_letters_of_our_share_groups_are_listed_and_go_back(
    broker: EmbeddedBroker, name: str
) -> None:
    letters = f"dlq.{name}"
    broker.create_topic(letters, 2)
    broker.create_topic(f"dlq{name}", 1)  # only looks like a dead letter topic
    dead = DeadLetter(
        error="rejected", source="share", attempt=1, topic=name, partition=1, offset=3, group="g"
    )
    both = {key: (value or b"").decode() for key, value in share_letter_headers(dead, [])}
    produce(broker, letters, (b"v", both, 0))
    topics = {each["topic"] for each in listed(broker)}
    assert {letters, f"{name}.dlq"} <= topics
    assert f"dlq{name}" not in topics
    (found,) = listed(broker, letters)
    assert (found["source"], found["error"], found["attempt"]) == ("share", "rejected", 1)
    assert rows(run(broker, "redrive", letters, "--format", "json"))[0]["records"] == 1
    (back,) = read(broker, name)
    assert (back.value(), back.partition(), headers_of(back)) == (b"v", 1, {})


def test_dead_letters_without_a_usable_origin_stay(broker: EmbeddedBroker, name: str) -> None:
    """Headers are untrusted input: they must not make the command write to internal topics."""
    letters = f"{name}.dlq"
    forged = ("__consumer_offsets", "no such/topic", "missing", letters, None)
    produce(broker, letters, *((b"%d" % n, ours(each), 0) for n, each in enumerate(forged)))
    produce(broker, letters, (b"plain", {}, 1), (b"good", ours(name), 1))
    done = run(broker, "redrive", letters)
    assert done.exit_code == ExitCode.PARTLY_DONE
    for text in ("__consumer_offsets is a topic of brokers", "missing does not exist", "--to"):
        assert text in done.output
    assert [each.value() for each in read(broker, name)] == [b"good"]
    assert len(listed(broker, letters)) == 6
    assert run(broker, "redrive", letters, "1:0", "--to", name).exit_code == 0
    assert sorted(each.value() or b"" for each in read(broker, name)) == [b"good", b"plain"]
    assert run(broker, "redrive", letters).exit_code == ExitCode.FAILED


def test_dead_letters_of_a_retry_topic_go_where_retries_go(
    broker: EmbeddedBroker, name: str
) -> None:
    settings = {"penstock.retry.to": name, "penstock.retry.backoff": "10ms"}
    broker.create_topic(f"{name}-again", 2, configs=settings)
    produce(broker, f"{name}-again", (b"v", {"penstock-attempt": "1", "x": "y"}, 1))
    letters = f"{name}-again.dlq"
    broker.create_topic(letters, 2)
    end_s = time.monotonic() + 20
    while not listed(broker, letters):
        assert time.monotonic() < end_s
    assert run(broker, "redrive", letters).exit_code == 0
    (back,) = read(broker, name)
    assert (back.value(), back.partition(), headers_of(back)) == (b"v", 1, {"x": b"y"})


def test_a_killed_redrive_continues_without_loss_or_repetition(
    broker: EmbeddedBroker, name: str
) -> None:
    letters, number = f"{name}.dlq", 3000
    produce(broker, letters, *((b"%d" % n, ours(name, n % 2), n % 2) for n in range(number)))
    command = [sys.executable, "-m", "penstock", "dlq", "redrive", letters, "--rate", "500"]
    for _ in range(3):
        process = subprocess.Popen([*command, "-b", broker.bootstrap], stderr=subprocess.DEVNULL)
        before = written(broker, name)
        while written(broker, name) < before + 60:
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert 0 < len(read(broker, name)) < number
    assert run(broker, "redrive", letters).exit_code == 0
    found = [int(each.value() or b"") for each in read(broker, name)]
    assert sorted(found) == list(range(number))


def test_two_concurrent_redrives_move_each_dead_letter_once(
    broker: EmbeddedBroker, name: str
) -> None:
    """The second redrive fences the first, whose open transaction does not count."""
    letters, number = f"{name}.dlq", 1000
    produce(broker, letters, *((b"%d" % n, ours(name), 0) for n in range(number)))
    command = [sys.executable, "-m", "penstock", "dlq", "redrive", letters, "--rate", "100"]
    with subprocess.Popen([*command, "-b", broker.bootstrap], stderr=subprocess.PIPE) as first:
        while not written(broker, name):
            assert first.poll() is None
        assert run(broker, "redrive", letters).exit_code == 0
        _, error = first.communicate(timeout=20)
        assert first.returncode == ExitCode.FAILED
        assert b"Traceback" not in error
    found = [int(each.value() or b"") for each in read(broker, name)]
    assert sorted(found) == list(range(number))


def test_a_redrive_keeps_its_rate_and_count(broker: EmbeddedBroker, name: str) -> None:
    letters = f"{name}.dlq"
    produce(broker, letters, *((b"%d" % n, ours(name), 0) for n in range(60)))
    began_s = time.monotonic()
    assert run(broker, "redrive", letters, "--rate", "50", "--count", "40").exit_code == 0
    assert time.monotonic() - began_s > 0.7
    assert len(read(broker, name)) == 40
    assert len(listed(broker, letters)) == 20


def test_matching_dead_letters_are_purged(broker: EmbeddedBroker, name: str) -> None:
    letters = f"{name}.dlq"
    errors = ("timeout", "no stock", "timeout")
    produce(broker, letters, *((b"%d" % n, ours(name, 0, e), 0) for n, e in enumerate(errors)))
    dry = run(broker, "purge", letters, "--error", "timeout", "--dry-run")
    assert "2 letters" in dry.output
    purged = rows(run(broker, "purge", letters, "--error", "timeout", "--format", "json"))
    assert purged == [
        {"topic": letters, "purged": 2, "deleted": 1}
    ]  # one of the two is behind another letter
    assert [each["offset"] for each in listed(broker, letters)] == [1]
    assert run(broker, "redrive", letters).exit_code == 0
    assert [each.value() for each in read(broker, name)] == [b"1"]
    assert rows(run(broker, "purge", letters, "--format", "json"))[0]["deleted"] == 2
    assert listed(broker, letters, "--all") == []


def test_records_that_are_no_dead_letters_are_not_purged(broker: EmbeddedBroker, name: str) -> None:
    produce(broker, name, (b"order", {}, 0), (b"letter", ours("elsewhere", 0, "timeout"), 0))
    purged = rows(run(broker, "purge", name, "--format", "json"))
    assert purged == [{"topic": name, "purged": 1, "deleted": 0}]
    assert [each.value() for each in read(broker, name)] == [b"order", b"letter"]


def test_a_retry_topic_is_not_purged(broker: EmbeddedBroker, name: str) -> None:
    broker.create_topic(f"{name}-again", 1, configs={"penstock.retry.to": name})
    done = run(broker, "purge", f"{name}-again")
    assert (done.exit_code, "is a delay or retry topic" in done.output) == (ExitCode.USAGE, True)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("list", "missing.dlq"), ExitCode.FAILED, "missing.dlq"),
        (("redrive", "missing.dlq"), ExitCode.FAILED, "missing.dlq"),
        (("redrive", "DLQ", "--rate", "0"), ExitCode.USAGE, "--rate"),
        (("redrive", "DLQ", "a:b"), ExitCode.USAGE, "'a:b' is not PARTITION:OFFSET"),
        (("redrive", "DLQ", "--since", "x"), ExitCode.USAGE, "'x' is not a time"),
        (("peek",), ExitCode.USAGE, "TOPIC"),
    ],
)
def test_bad_input_is_refused(
    broker: EmbeddedBroker, name: str, words: tuple[str, ...], code: ExitCode, message: str
) -> None:
    done = run(broker, *(f"{name}.dlq" if each == "DLQ" else each for each in words))
    assert (done.exit_code, message in done.output) == (code, True), done.output
