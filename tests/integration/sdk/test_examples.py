"""The examples for applications, each run as a reader would."""

import threading
from pathlib import Path
from urllib.request import urlopen

import pytest
from applications import (
    consumer_per_thread,
    custom_partitioner,
    custom_serializer,
    exactly_once_copy,
    interceptor_chain,
    web_form,
    workers,
)

from penstock.sdk import AsyncCommit, Consumer, Outgoing, Producer, Record
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.clock import ManualClock
from support.records.reading import all_records
from support.sdk.waiting import wait_until


def values(broker: EmbeddedBroker, topic: str) -> list[bytes | None]:
    return [each.value() for each in all_records(broker.bootstrap, topic)]


def written(broker: EmbeddedBroker, topic: str, count: int, partitions: int = 1) -> None:
    broker.create_topic(topic, partitions)
    with Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0}) as producer:
        producer.send_all(Outgoing(topic, b"%d" % n, b"%d" % n) for n in range(count))


@pytest.mark.row("A018", "A019", "A021", "A036")
def test_interceptors_partitioner_and_serializer_work(shared_broker: EmbeddedBroker) -> None:
    where = shared_broker.bootstrap
    for topic in ("greetings", "sized", "companies"):
        shared_broker.create_topic(topic, 3 if topic == "sized" else 1)
    assert interceptor_chain.main(where, "greetings", "hi", "ho") == "2 sent, 0 failed"
    assert values(shared_broker, "greetings") == [b"app-1: hi", b"app-1: ho"]
    placed = custom_partitioner.main(where, "sized", "acme", "globex", "a", "b")
    assert [placed["acme"], placed["globex"]] == [0, 0]
    assert {placed["a"], placed["b"]} <= {1, 2}
    company = custom_serializer.Company("Acme", "1 Main Street")
    assert custom_serializer.main(where, "companies") == company


@pytest.mark.row("A059")
def test_both_plans_handle_every_record_once(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "plans", 60, 3)
    first: list[int] = []
    second: list[int] = []
    consumer_per_thread.main(
        shared_broker.bootstrap,
        "plans",
        handle=lambda record: first.append(int(record.value or b"")),
        idle_s=1.5,
    )
    assert sorted(first) == list(range(60))

    def handle(record: Record[bytes, bytes]) -> None:
        second.append(int(record.value or b""))

    app = workers.application(shared_broker.bootstrap, "plans", handle=handle)
    running = threading.Thread(target=app.run)
    running.start()
    wait_until(lambda: len(second) >= 60, "plan 2 handles all")
    app.stop()
    running.join(30)
    assert sorted(second) == list(range(60))


@pytest.mark.row("A115")
def test_the_exactly_once_copy_is_exact(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "copied", 20)
    shared_broker.create_topic("copies", 1)
    for _ in range(2):
        exactly_once_copy.main(shared_broker.bootstrap, "copied", "copies", idle_s=1)
    assert values(shared_broker, "copies") == [b"%d" % n for n in range(20)]


def test_a_web_form_becomes_a_record(shared_broker: EmbeddedBroker) -> None:
    shared_broker.create_topic("answers", 1)
    with web_form.server(shared_broker.bootstrap, "answers", "0") as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        page = f"http://127.0.0.1:{server.server_address[1]}/"
        with urlopen(page) as form:
            assert b"<form" in form.read()
        with urlopen(page, data=b"name=Ada&text=%3Chello%3E") as answer:
            assert answer.read() == b"Thank you, Ada: saved as number 0."
        server.shutdown()
        serving.join(10)
    assert values(shared_broker, "answers") == [b'{"name":"Ada","text":"<hello>"}']


def test_every_example_is_run_here() -> None:
    folder = Path(workers.__file__).parent
    here = Path(__file__).read_text()
    assert all(f"    {each.stem},\n" in here for each in folder.glob("*.py"))


def test_a_test_decides_when_a_consumer_commits(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "timed", 4)
    clock, commits = ManualClock(), []

    class Noting(Consumer[bytes, bytes]):
        def _send_commit(self, offsets: object, *, wait: bool) -> None:
            commits.append((offsets, wait))

    config = {
        "bootstrap.servers": shared_broker.bootstrap,
        "group.id": "timed",
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    mode = AsyncCommit(every_ms=1_000, sync_every=2)
    with Noting(config, ["timed"], commit=mode, clock=clock) as consumer:
        while not consumer.batch(2):
            pass
        while not consumer.batch(1):
            pass
        assert commits == []
        clock.advance(1_000)
        consumer.batch(1)
        assert commits == [({("timed", 0): 3}, False)]
        clock.advance(1_000)
        consumer.batch(1, 0)
        assert commits[1:] == [({("timed", 0): 4}, True)]
