"""The SDK against Apache Kafka works as it does with Penstock."""

import threading

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from peers.kafka import KafkaCluster
from penstock.sdk import (
    STRING,
    App,
    Backoff,
    Guarantee,
    Order,
    Outgoing,
    Producer,
    Record,
    SdkError,
)
from support.records.reading import all_records
from support.sdk.waiting import wait_until

pytestmark = pytest.mark.peer


def test_an_application_uses_workers_retries_dead_letters_and_transactions(
    kafka: KafkaCluster,
) -> None:
    config: dict[str, str | int | float | bool] = {
        "bootstrap.servers": kafka.bootstrap,
        "log_level": 0,
    }
    names = ("sdk-orders", "sdk-payments", "sdk-receipts")
    admin = AdminClient(config)
    for future in admin.create_topics([NewTopic(each, 2) for each in names]).values():
        future.result(30)
    with Producer(config, key=STRING) as producer:
        for topic in names[:2]:
            producer.send_all(Outgoing(topic, b"%d" % n, f"{n % 4}") for n in range(40))
    app = App(config, group="sdk-billing")
    handled: list[tuple[bytes | None, int]] = []

    @app.on(
        "sdk-orders",
        workers=4,
        order=Order.KEY,
        retry=Backoff("10ms", in_place=True),
        dead_letters=True,
    )
    async def bill(record: Record[bytes, bytes]) -> None:
        if record.value == b"7":
            raise ValueError("no such order")
        handled.append((record.key, int(record.value or b"")))

    @app.on("sdk-payments", guarantee=Guarantee.EXACTLY_ONCE)
    def pay(record: Record[bytes, bytes]) -> Outgoing[bytes, bytes]:
        return Outgoing("sdk-receipts", record.value, record.key)

    running = threading.Thread(target=app.run)
    running.start()
    try:
        wait_until(lambda: len(handled) == 39, "the orders are handled")
        wait_until(
            lambda: len(all_records(kafka.bootstrap, "sdk-receipts")) == 40, "receipts are written"
        )
    finally:
        app.stop()
        running.join(60)
    for key in (b"0", b"1", b"2", b"3"):
        values = [value for each, value in handled if each == key]
        assert values == sorted(values)
    letters = all_records(kafka.bootstrap, "sdk-orders.sdk-billing.dlq")
    assert [each.value() for each in letters] == [b"7"]


def test_retry_topics_are_refused_with_advice(kafka: KafkaCluster) -> None:
    app = App({"bootstrap.servers": kafka.bootstrap, "log_level": 0}, group="g")
    app.on("sdk-refused", retry=Backoff("1s"))(print)
    with pytest.raises(SdkError, match="in_place=True"):
        app.run()
