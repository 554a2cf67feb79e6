"""The programs in the documentation run exactly as printed; Spark's are in unit tests."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import msgspec
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from penstock.sdk import App, Outgoing, Producer
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.registry import EmbeddedRegistry
from support.docs.programs import programs, run
from support.records.reading import all_records
from support.sdk.waiting import wait_until

SDK = "docs/sdk.md"
RUN_HERE = {
    "docs/start.md": 2,
    SDK: 6,
    "docs/registry.md": 2,
    "docs/delay.md": 1,
    "docs/groups.md": 2,
    "docs/tour.md": 3,
}
"""How many programs each page has: a new program needs a test."""


class Order(msgspec.Struct):
    """An order as in the pages."""

    id: int


class Enough(Exception):
    """Ends a loop that runs for ever on the page."""


@pytest.mark.parametrize("page", RUN_HERE)
def test_every_program_is_counted(page: str) -> None:
    assert len(programs(page)) == RUN_HERE[page]


def config(broker: EmbeddedBroker) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "readers",
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }


def written(broker: EmbeddedBroker, topic: str, *values: bytes) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0}) as producer:
        producer.send_all(Outgoing(topic, value, b"k") for value in values)


def values(broker: EmbeddedBroker, topic: str) -> list[bytes | None]:
    return [each.value() for each in all_records(broker.bootstrap, topic)]


@pytest.mark.parametrize(
    ("page", "number", "tests"),
    [("docs/start.md", 0, 1), ("docs/start.md", 1, 0), ("docs/tour.md", 2, 1)],
)
def test_a_page_about_tests_works(
    page: str, number: int, tests: int, broker: EmbeddedBroker
) -> None:
    names = run(page, number, broker.bootstrap, {"Producer": confluent_kafka.Producer})
    found = [each for name, each in names.items() if name.startswith("test_")]
    for test in found:
        test(broker)
    assert len(found) == tests


def test_the_first_program_of_the_tour_works(broker: EmbeddedBroker) -> None:
    broker.create_topic("events", 1)
    run("docs/tour.md", 0, broker.bootstrap, {})
    assert values(broker, "events") == [b"hello"]


def test_the_sdk_producer_programs_work(
    broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topic("orders", 1)
    producing = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    names = run(SDK, 0, broker.bootstrap, {"config": producing})
    assert names["metadata"].offset == 1
    assert values(broker, "orders") == [b'{"id":1}', b'{"id":2}']
    staged = run(SDK, 1, broker.bootstrap, {"config": producing, "Producer": Producer})
    with staged["producer"] as producer:
        producer.send("orders", b"3").result(30)
        shown: list[str] = []

        def has_shown() -> bool:
            shown.append(capsys.readouterr().out)
            return "orders 0 0 0 1" in "".join(shown)

        wait_until(has_shown, "the stages are shown")
    assert "Stage.ACKNOWLEDGED" in "".join([*shown, capsys.readouterr().out])


def test_the_sdk_consumer_programs_work(broker: EmbeddedBroker) -> None:
    broker.create_topic("orders", 1)
    written(broker, "orders", b'{"id":1}', b'{"id":2}')
    seen: list[Order] = []

    def handle(order: Order) -> None:
        seen.append(order)
        if len(seen) == 2:
            raise Enough

    with pytest.raises(Enough):
        run(SDK, 2, broker.bootstrap, {"config": config(broker), "Order": Order, "handle": handle})
    assert seen == [Order(1), Order(2)]


@contextmanager
def running(number: int, broker: EmbeddedBroker, names: dict[str, Any]) -> Iterator[None]:
    """Runs an application on a thread of its own until it is stopped."""
    errors: list[BaseException] = []

    def target() -> None:
        try:
            run(SDK, number, broker.bootstrap, names)
        except Exception as error:  # noqa: BLE001 - raised below
            errors.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    try:
        yield
    finally:
        names["app"].stop()
        thread.join(30)
    assert errors == []


def test_the_sdk_application_programs_work(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for topic in ("orders", "payments", "receipts"):
        broker.create_topic(topic, 1)
    written(broker, "orders", b'{"id":1}', b"{", b'{"id":2}')
    written(broker, "payments", b"5", b"6")
    calls: list[bool] = []

    def open_yet() -> bool:
        calls.append(len(calls) > 0)
        return calls[-1]

    names: dict[str, Any] = {
        "Order": Order,
        "open_yet": open_yet,
        "receipt": lambda value: b"paid " + value,
    }
    with running(3, broker, names):
        wait_until(lambda: len(calls) == 2, "both orders are handled")
        wait_until(lambda: len(values(broker, "receipts")) == 2, "both payments are handled")
        wait_until(lambda: values(broker, "orders.billing.dlq") == [b"{"], "the dead letter")
    assert values(broker, "receipts") == [b"paid 5", b"paid 6"]
    assert values(broker, "orders.billing.retry") == [b'{"id":1}'], "given back for 30 s"
    assert (tmp_path / "penstock" / "sdk" / "billing" / "instance-1").exists()


def test_the_sdk_transaction_programs_work(broker: EmbeddedBroker) -> None:
    for topic in ("orders", "copies"):
        broker.create_topic(topic, 1)
    written(broker, "orders", b"1", b"2")

    def transform(value: bytes) -> bytes:
        if value == b"end":
            raise Enough
        if value == b"2":
            threading.Timer(1, written, (broker, "orders", b"end")).start()
        return b"copy of " + value

    with pytest.raises(Enough):
        run(SDK, 4, broker.bootstrap, {"config": config(broker), "transform": transform})
    assert values(broker, "copies") == [b"copy of 1", b"copy of 2"]


def test_the_sdk_parallel_programs_work() -> None:
    app = App({}, group="g")
    run(SDK, 5, "", {"app": app})
    (subscription,) = app._subscriptions
    assert (subscription.topic, subscription.workers) == ("orders", 100)


def test_the_registry_programs_work(broker: EmbeddedBroker, registry: EmbeddedRegistry) -> None:
    names = run(
        "docs/registry.md", 1, broker.bootstrap, {"SchemaRegistryClient": SchemaRegistryClient}
    )
    names["test_orders_are_read"](broker, registry)


def test_the_delay_programs_work(broker: EmbeddedBroker) -> None:
    broker.create_topic("later", 1, configs={"penstock.delay.to": "orders"})
    timed = {"penstock.delay.to": "orders", "penstock.delay.by": "timestamp"}
    broker.create_topic("timed", 1, configs=timed)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    names = {"producer": producer, "at_ms": round(time.time() * 1000) + 5_000}
    run("docs/delay.md", 0, broker.bootstrap, names)
    assert producer.flush(30) == 0
    assert values(broker, "later") == [b"wake up", b"report", None]
    assert values(broker, "timed") == [b"wake up"]


def test_the_assignor_programs_work() -> None:
    from penstock.sdk.assignor import TopologyTasks

    run("docs/groups.md", 0, "", {})
    names = run("docs/groups.md", 1, "", {})
    assert names["mine"]({}, TopologyTasks((), frozenset())) == {}
