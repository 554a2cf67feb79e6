"""The SDK's producer against a broker."""

import asyncio
import logging
import threading
from typing import Any

import pytest

from penstock.sdk.async_producer import AsyncProducer
from penstock.sdk.errors import SendFailed, SerializationFailed, UndeliveredRecords
from penstock.sdk.interceptor import ProducerInterceptor
from penstock.sdk.producer import Producer
from penstock.sdk.record import Outgoing, RecordMetadata
from penstock.sdk.serde import STRING, Json
from penstock.sdk.stages import ProducerStages
from penstock.sdk.trace import Stage, Trace
from penstock.testing.broker import EmbeddedBroker
from support.records.reading import all_records
from support.sdk.waiting import wait_until


def config(broker: EmbeddedBroker, **more: object) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap, "log_level": 0, "linger.ms": 0, **more}


def test_a_send_returns_where_the_record_is(shared_broker: EmbeddedBroker) -> None:
    shared_broker.create_topic("sent", 3)
    with Producer(config(shared_broker), key=STRING, value=Json()) as producer:
        first = producer.send("sent", {"n": 1}, key="a", headers=[("h", b"x")], partition=2)
        metadata = first.result(10)
        assert (metadata.topic, metadata.partition, metadata.offset) == ("sent", 2, 0)
        second = producer.send("sent", None, partition=2, timestamp_ms=1234).result(10)
        assert (second.offset, second.timestamp_ms) == (1, 1234)
    found = all_records(shared_broker.bootstrap, "sent")
    assert [(each.key(), each.value(), each.headers()) for each in found] == [
        (b"a", b'{"n":1}', [("h", b"x")]),
        (None, None, None),
    ]


def test_asyncio_awaits_single_sends_and_batches(shared_broker: EmbeddedBroker) -> None:
    shared_broker.create_topic("awaited", 1)

    async def sending() -> list[int | None]:
        async with AsyncProducer(Producer(config(shared_broker))) as producer:
            one = await producer.send("awaited", b"0")
            many = await producer.send_all(
                Outgoing("awaited", str(each).encode()) for each in range(1, 500)
            )
            return [one.offset, *(each.offset for each in many)]

    assert asyncio.run(sending()) == list(range(500))


def test_unobserved_failures_are_raised_on_close(
    shared_broker: EmbeddedBroker,
) -> None:
    shared_broker.create_topic("small", 1, configs={"max.message.bytes": "1000"})
    producer = Producer(config(shared_broker))
    asked = producer.send("small", b"x" * 2000)
    with pytest.raises(SendFailed) as failed:
        asked.result(10)
    assert failed.value.too_large
    producer.flush()
    producer.send("small", b"y" * 2000)
    with pytest.raises(UndeliveredRecords, match=r"1 record was not delivered; first: .*small-0"):
        producer.close()


def test_a_record_that_librdkafka_refuses_raises_at_once(
    shared_broker: EmbeddedBroker,
) -> None:
    with Producer(config(shared_broker, **{"message.max.bytes": 1000})) as producer:
        with pytest.raises(SendFailed) as failed:
            producer.send("any", b"x" * 5000)
        assert failed.value.too_large


def test_a_full_queue_blocks_the_caller_but_not_an_event_loop(
    shared_broker: EmbeddedBroker,
) -> None:
    shared_broker.create_topic("full", 1)
    few = config(shared_broker, **{"queue.buffering.max.messages": 10})
    with Producer(few) as producer:
        sent = [producer.send("full", b"x") for _ in range(50)]
        assert [each.result(10).offset for each in sent] == list(range(50))

    async def sending() -> int:
        async with AsyncProducer(Producer(few)) as producer:
            return len(await producer.send_all(Outgoing("full", b"x") for _ in range(50)))

    assert asyncio.run(sending()) == 50


class Tagged(ProducerInterceptor):
    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.acknowledged: list[int | None] = []

    def on_send(self, record: Outgoing[Any, Any], /) -> Outgoing[Any, Any]:
        return Outgoing(record.topic, f"{record.value}{self.tag}", record.key)

    def on_acknowledgement(
        self, metadata: RecordMetadata | None, error: SendFailed | None, /
    ) -> None:
        assert error is None
        assert metadata is not None
        self.acknowledged.append(metadata.offset)


class Broken(ProducerInterceptor):
    def on_send(self, _: Outgoing[Any, Any], /) -> Outgoing[Any, Any]:
        raise RuntimeError("no")

    def on_acknowledgement(self, _: RecordMetadata | None, __: SendFailed | None, /) -> None:
        raise RuntimeError("no")


@pytest.mark.row("A021")
def test_interceptors_run_in_order_and_a_broken_one_is_logged(
    shared_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    shared_broker.create_topic("intercepted", 1)
    first, last = Tagged("-a"), Tagged("-b")
    with Producer(
        config(shared_broker), value=STRING, interceptors=[first, Broken(), last]
    ) as producer:
        producer.send("intercepted", "v").result(10)
    found = all_records(shared_broker.bootstrap, "intercepted")
    assert [each.value() for each in found] == [b"v-a-b"]
    assert (first.acknowledged, last.acknowledged) == ([0], [0])
    logged = [each.message for each in caplog.records if each.levelno == logging.ERROR]
    assert any("Broken.on_send" in each for each in logged)
    assert any("Broken.on_acknowledgement" in each for each in logged)


@pytest.mark.row("A022")
def test_the_accumulator_and_the_sender_are_observable(shared_broker: EmbeddedBroker) -> None:
    """Records wait in the accumulator for the linger time before they are sent."""
    shared_broker.create_topic("staged", 2)
    seen: list[ProducerStages] = []
    raw: list[str] = []
    settings = {
        **config(shared_broker),
        "linger.ms": 600,
        "statistics.interval.ms": 50,
        "stats_cb": raw.append,
    }
    with Producer(settings, stages=seen.append) as producer:
        for number in range(40):
            producer.send("staged", b"v", partition=number % 2)

        def count(name: str) -> int:
            return sum(getattr(each, name) for each in seen[-1].partitions) if seen else 0

        wait_until(lambda: count("accumulated") == 40, "all are in the accumulator")
        assert (seen[-1].unfinished, count("sent")) == (40, 0)
        wait_until(lambda: count("sent") == 40, "all were sent")
        wait_until(lambda: seen[-1].unfinished == 0, "all are reported")
    assert {(each.topic, each.partition) for each in seen[-1].partitions} == {
        ("staged", 0),
        ("staged", 1),
    }
    waited_ms = [each.accumulator_ms for look in seen for each in look.senders]
    assert max(each for each in waited_ms if each is not None) > 300
    assert len(raw) == len(seen), "the application's own callback is called too"


def test_a_trace_shows_the_stages_and_their_threads(shared_broker: EmbeddedBroker) -> None:
    shared_broker.create_topic("traced", 4)
    seen: list[Trace] = []
    with Producer(config(shared_broker), partitioner=lambda *_: 3, trace=seen.append) as producer:
        producer.send("traced", b"v").result(10)
    stages = [each.stage for each in seen]
    assert stages == [
        Stage.INTERCEPTED,
        Stage.SERIALIZED,
        Stage.PARTITIONED,
        Stage.QUEUED,
        Stage.ACKNOWLEDGED,
    ]
    assert [each.partition for each in seen] == [None, None, 3, 3, 3]
    main = threading.current_thread().name
    assert [each.thread for each in seen] == [main] * 4 + ["penstock-producer"]


@pytest.mark.row("A016", "A017", "A018")
def test_a_partition_is_explicit_or_chosen_by_javas_hash_or_a_custom_partitioner(
    shared_broker: EmbeddedBroker,
) -> None:
    shared_broker.create_topic("placed", 7)

    def by_length(_topic: str, key: bytes | None, _value: bytes | None, count: int) -> int:
        return len(key or b"") % count

    with Producer(config(shared_broker), key=STRING) as producer:
        # The partitions that Java's client computes for 7 partitions.
        hashed = [producer.send("placed", b"", key=key) for key in ("a", "b", "hello")]
        assert [each.result(10).partition for each in hashed] == [
            partition_by_java(key, 7) for key in ("a", "b", "hello")
        ]
        assert producer.send("placed", b"", key="a", partition=6).result(10).partition == 6
    with Producer(config(shared_broker), key=STRING, partitioner=by_length) as producer:
        assert producer.send("placed", b"", key="12345").result(10).partition == 5


def partition_by_java(key: str, count: int) -> int:
    import confluent_kafka.cimpl

    return confluent_kafka.cimpl.murmur2(key.encode(), count)


@pytest.mark.row("A019")
def test_a_custom_serializer_is_used_and_its_errors_are_raised(
    shared_broker: EmbeddedBroker,
) -> None:
    class Celsius:
        def serialize(self, value: float, /) -> bytes:
            return b"%.1f" % value

    shared_broker.create_topic("warm", 1)
    with Producer(config(shared_broker), value=Celsius()) as producer:
        producer.send("warm", 36.64)
        with pytest.raises(SerializationFailed, match="the value of a record for warm"):
            producer.send("warm", "hot")  # type: ignore[arg-type]
    assert [each.value() for each in all_records(shared_broker.bootstrap, "warm")] == [b"36.6"]
