"""`nack(delay)`: the record is delivered again after that time, with retries and without."""

import time
from itertools import pairwise

from penstock.sdk.app import Guarantee
from penstock.sdk.failure import nack
from penstock.sdk.parallel.work import Order
from penstock.sdk.producer import Producer
from penstock.sdk.record import Outgoing, Record
from penstock.testing.broker import EmbeddedBroker
from support.records.reading import all_records
from support.sdk.apps import app_of, letters, running, written
from support.sdk.waiting import wait_until

Raw = Record[bytes, bytes]


def test_a_nacked_record_blocks_only_its_key(shared_broker: EmbeddedBroker) -> None:
    shared_broker.create_topic("given-back", 1)
    with Producer({"bootstrap.servers": shared_broker.bootstrap, "linger.ms": 0}) as producer:
        producer.send_all(
            Outgoing("given-back", value, value[:1]) for value in (b"a1", b"b1", b"a2", b"b2")
        )
    app = app_of(shared_broker, "held")
    seen: list[tuple[bytes | None, float]] = []

    @app.on("given-back", dead_letters=True, order=Order.KEY)
    def handle(record: Raw) -> None:
        is_first = record.value not in [each for each, _ in seen]
        seen.append((record.value, time.monotonic()))
        if record.value == b"a1" and is_first:
            nack(delay="500ms")

    with running(app):
        wait_until(lambda: len(seen) == 5, "all are handled")
    assert [each for each, _ in seen] == [b"a1", b"b1", b"b2", b"a1", b"a2"]
    assert seen[3][1] - seen[0][1] >= 0.49
    assert letters(shared_broker, "given-back.held.dlq") == []


def test_a_record_nacked_for_ever_becomes_a_dead_letter(
    shared_broker: EmbeddedBroker,
) -> None:
    written(shared_broker, "for-ever", b"1", b"2")
    app, seen = app_of(shared_broker, "patient"), []

    @app.on("for-ever", dead_letters=True, nacks=3)
    def handle(record: Raw) -> None:
        seen.append(record.value)
        if record.value == b"1":
            nack(delay="20ms", reason="never")

    with running(app):
        wait_until(lambda: b"2" in seen, "the next one is handled")
    assert seen == [b"1"] * 4 + [b"2"]
    assert letters(shared_broker, "for-ever.patient.dlq") == [(b"1", "Nack: never", 0)]


def test_with_exactly_once_a_nacked_record_blocks_its_partition(
    shared_broker: EmbeddedBroker,
) -> None:
    for topic in ("tolls", "tolls-paid"):
        shared_broker.create_topic(topic, 2)
    with Producer({"bootstrap.servers": shared_broker.bootstrap, "linger.ms": 0}) as producer:
        for partition, value in ((0, b"0a"), (0, b"0b"), (0, b"0c"), (1, b"1a"), (1, b"1b")):
            producer.send("tolls", value, partition=partition).result()
    app, seen = app_of(shared_broker, "payers"), []

    @app.on("tolls", guarantee=Guarantee.EXACTLY_ONCE, dead_letters=True)
    def pay(record: Raw) -> Outgoing[bytes, bytes]:
        seen.append((record.value, time.monotonic()))
        times = [at for value, at in seen if value == b"0b"]
        if record.value == b"0b" and len(times) < 3:
            nack(delay="300ms")
        return Outgoing("tolls-paid", record.value, partition=record.partition)

    def paid() -> list[bytes | None]:
        return [each.value() for each in all_records(shared_broker.bootstrap, "tolls-paid")]

    with running(app):
        wait_until(lambda: len(paid()) == 5, "all are paid")
    assert [each for each in paid() if each and each[:1] == b"0"] == [b"0a", b"0b", b"0c"]
    assert [each for each, _ in seen].count(b"0a") == 1, "what came before it was committed"
    times = [at for value, at in seen if value == b"0b"]
    assert min(after - before for before, after in pairwise(times)) >= 0.29
    assert letters(shared_broker, "tolls.payers.dlq") == []
