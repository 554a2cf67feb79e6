"""Applications: handlers with retries, dead letters, and one guarantee per topic."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from penstock.sdk.app import App, Guarantee
from penstock.sdk.errors import HandlerFailed, SdkError
from penstock.sdk.exactly_once import ExactlyOnce
from penstock.sdk.failure import Backoff, nack
from penstock.sdk.parallel.work import Order
from penstock.sdk.producer import Producer
from penstock.sdk.record import Outgoing, Record
from penstock.sdk.serde import Json
from penstock.testing.broker import EmbeddedBroker
from support.records.reading import all_records
from support.sdk.apps import app_of, letters, running, written
from support.sdk.delays import delay_service
from support.sdk.waiting import wait_until

Raw = Record[bytes, bytes]


def test_poison_and_failing_records_become_dead_letters(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "poison", b"1", b"{", b'"bad"', b"4")
    app, seen = app_of(shared_broker, "g1"), []

    @app.on(
        "poison", value=Json(), retry=Backoff("10ms", in_place=True), dead_letters=True, workers=2
    )
    def handle(record: Record[bytes, object]) -> None:
        if record.value == "bad":
            raise ValueError("cannot")
        seen.append(record.value)

    with running(app):
        wait_until(lambda: seen == [1, 4], "the good ones are handled")
    found = letters(shared_broker, "poison.g1.dlq")
    assert [(value, offset) for value, _, offset in found] == [(b"{", 1), (b'"bad"', 2)]
    assert "DeserializationFailed" in found[0][1]
    assert found[1][1] == "ValueError: cannot"


@pytest.mark.slow
def test_a_record_is_nacked_for_a_while_or_fails_for_good(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    written(broker, "orders", b"later", b"never", b"fine")
    app, seen = app_of(broker, "billing"), []

    @app.on("orders", retry=Backoff("20ms,20ms"), dead_letters=True)
    async def handle(record: Raw) -> None:
        seen.append((record.value, record.topic, record.header("penstock-attempt")))
        if record.value == b"never":
            raise RuntimeError("no stock")
        if record.value == b"later" and record.topic == "orders":
            nack(delay="50ms", reason="not yet")

    with delay_service(broker.bootstrap, tmp_path), running(app):
        wait_until(lambda: len(seen) == 6, "all attempts are made")
        wait_until(lambda: len(letters(broker, "orders.billing.dlq")) == 1, "it is a dead letter")
    assert seen[:3] == [(each, "orders", None) for each in (b"later", b"never", b"fine")]
    assert sorted(seen[3:]) == [
        (b"later", "orders.billing.again", b"1"),
        (b"never", "orders.billing.again", b"1"),
        (b"never", "orders.billing.again", b"2"),
    ]
    value, error, offset = letters(broker, "orders.billing.dlq")[0]
    assert (value, offset) == (b"never", 1)
    assert error == "gave up after 2 attempts: RuntimeError: no stock"


def test_a_changed_back_off_applies_from_the_next_start(shared_broker: EmbeddedBroker) -> None:
    """The retry topic of the first start still has the former back-off."""
    written(shared_broker, "changing", b"x")
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap})
    topic = ConfigResource(ConfigResource.Type.TOPIC, "changing.g3.retry")

    def settings() -> tuple[str, str] | None:
        try:
            found = admin.describe_configs([topic])[topic].result(30)
        except KafkaException:
            return None  # not created yet
        return found["penstock.retry.backoff"].value, found["penstock.retry.max.attempts"].value

    for delays, most in (("1s,10s", "2"), ("1s,10s,1m", "3")):
        app = app_of(shared_broker, "g3")
        app.on("changing", retry=Backoff(delays))(lambda _: None)
        with running(app):
            wait_until(lambda: settings() == (delays, most), "the topic has it")  # noqa: B023


@pytest.mark.row("A149")
def test_an_oversize_record_becomes_a_dead_letter_and_does_not_stall(
    shared_broker: EmbeddedBroker,
) -> None:
    written(shared_broker, "oversize", b"x" * 5000, b"y" * 900_000, b"small")
    # The dead letter topic accepts less than the records: a stub says where the record is.
    shared_broker.create_topic("oversize.g2.dlq", 1, configs={"max.message.bytes": "10000"})
    app, seen = app_of(shared_broker, "g2"), []

    @app.on("oversize", dead_letters=True, max_record_bytes=1000)
    def handle(record: Raw) -> None:
        seen.append(record.value)

    with running(app):
        wait_until(lambda: seen == [b"small"], "the small one is handled")
        wait_until(lambda: len(letters(shared_broker, "oversize.g2.dlq")) == 2, "both are there")
    found = letters(shared_broker, "oversize.g2.dlq")
    assert [(value, offset) for value, _, offset in found] == [(b"x" * 5000, 0), (None, 1)]
    assert "5000 bytes" not in found[1][1]
    assert "max_record_bytes=1000" in found[1][1]


@pytest.mark.row("A115", "A116", "A182")
def test_one_application_has_a_guarantee_for_each_topic(shared_broker: EmbeddedBroker) -> None:
    for topic in ("readings", "events", "payments"):
        written(shared_broker, topic, b"1", b"fail", b"3")
    shared_broker.create_topic("receipts", 1)
    app = app_of(shared_broker, "three")
    seen: dict[str, list[bytes | None]] = {"readings": [], "events": [], "payments": []}

    @app.on("readings", guarantee=Guarantee.AT_MOST_ONCE)
    def read(record: Raw) -> None:
        seen["readings"].append(record.value)
        if record.value == b"fail":
            raise RuntimeError("lost, and never seen again")

    @app.on("events", retry=Backoff("10ms", in_place=True))
    def note(record: Raw) -> None:
        seen["events"].append(record.value)
        if seen["events"].count(b"fail") == 1 and record.value == b"fail":
            raise RuntimeError("seen again")

    @app.on("payments", guarantee=Guarantee.EXACTLY_ONCE, dead_letters=True)
    def pay(record: Raw) -> Outgoing[bytes, bytes]:
        seen["payments"].append(record.value)
        if record.value == b"fail":
            raise RuntimeError("unpaid")
        return Outgoing("receipts", b"paid %b" % (record.value or b""))

    with running(app):
        wait_until(lambda: [len(each) for each in seen.values()] == [3, 4, 3], "all are handled")
    assert seen["readings"] == [b"1", b"fail", b"3"]
    assert seen["events"] == [b"1", b"fail", b"fail", b"3"]
    paid = [each.value() for each in all_records(shared_broker.bootstrap, "receipts")]
    assert paid == [b"paid 1", b"paid 3"]
    assert [each[0] for each in letters(shared_broker, "payments.three.dlq")] == [b"fail"]


def test_a_too_large_result_becomes_a_dead_letter_in_its_transaction(
    shared_broker: EmbeddedBroker,
) -> None:
    written(shared_broker, "growing", b"1", b"5000", b"3000000", b"2")
    shared_broker.create_topic("narrow", 1, configs={"max.message.bytes": "1000"})
    app = app_of(shared_broker, "growers")

    @app.on("growing", guarantee=Guarantee.EXACTLY_ONCE, dead_letters=True)
    def grow(record: Raw) -> list[Outgoing[bytes, bytes]]:
        size = int(record.value or b"")
        return [Outgoing("narrow", b"small"), Outgoing("narrow", b"x" * size)]

    def values(topic: str) -> list[bytes | None]:
        return [each.value() for each in all_records(shared_broker.bootstrap, topic)]

    with running(app):
        wait_until(lambda: len(values("narrow")) == 4, "the results")
        with Producer({"bootstrap.servers": shared_broker.bootstrap}) as producer:
            producer.send("growing", b"3")
        wait_until(lambda: len(values("narrow")) == 6, "the next result")
        (consumer,) = app._running
        assert isinstance(consumer, ExactlyOnce)
        assert not consumer._too_large, "what is committed is not remembered"
    assert values("narrow") == [b"small", b"x", b"small", b"xx", b"small", b"xxx"]
    assert [each[0] for each in letters(shared_broker, "growing.growers.dlq")] == [
        b"5000",
        b"3000000",
    ]


def test_without_a_policy_a_failure_ends_the_application(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "ends", b"1")
    app = app_of(shared_broker, "g3")

    @app.on("ends")
    def handle(_: Raw) -> None:
        raise ValueError("no")

    with pytest.raises(HandlerFailed, match="ends-0 offset 0: ValueError: no"):
        app.run()


async def later(_: Raw) -> None: ...


def at_once(_: Raw) -> None: ...


@pytest.mark.parametrize(
    ("options", "handler", "reason"),
    [
        ({"guarantee": Guarantee.AT_MOST_ONCE, "retry": Backoff("1s")}, at_once, "retry needs"),
        ({"guarantee": Guarantee.AT_MOST_ONCE, "workers": 2}, at_once, "workers need another"),
        ({"max_record_bytes": 5}, at_once, "max_record_bytes needs dead_letters"),
        ({"processes": True}, later, "processes=True needs a function, not a coroutine"),
        (
            {"guarantee": Guarantee.EXACTLY_ONCE, "processes": True, "redo_at_most": 9},
            at_once,
            "processes and redo_at_most are not for the guarantee exactly once",
        ),
        (
            {"guarantee": Guarantee.EXACTLY_ONCE, "order": Order.KEY},
            at_once,
            "workers and order need a coroutine",
        ),
        (
            {"guarantee": Guarantee.EXACTLY_ONCE, "workers": 3},
            at_once,
            "workers and order need a coroutine",
        ),
    ],
)
def test_contradicting_options_are_refused_at_the_decorator(
    options: dict[str, Any], handler: Any, reason: str
) -> None:
    app = App({"bootstrap.servers": "127.0.0.1:1"}, group="g")
    with pytest.raises(SdkError, match=f"orders: .*{reason}"):
        app.on("orders", **options)(handler)
