"""The range reader with a slow consumer, behind a link that damages responses: no row is lost,
repeated or damaged. A plain consumer over an undisturbed link gives the expected rows.
"""

import os
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql.datasource import GreaterThanOrEqual, LessThan

from peers.process import free_ports
from penstock.errors import ErrorCode
from penstock.record.build import build_batch
from penstock.record.record import Record
from penstock.spark.decode.decoder import NATIVE
from penstock.spark.options import Options
from penstock.spark.source.batch_reader import FilteringReader
from penstock.spark.source.settings import batch_settings
from penstock.testing.broker import EmbeddedBroker
from penstock.types import Buffer
from penstock.wire.apis import APIS
from penstock.wire.client_frame import read_response_header
from penstock.wire.codec import decode, encode
from penstock.wire.messages.fetch import FetchResponse, PartitionData
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.brokers.lossy_link import cut, cut_at_end, read_frame
from support.brokers.wire_link import WireLink

FETCH = 1
SEEDS = range(200) if "PENSTOCK_SOAK" in os.environ else range(20)
FAULTS = ("refuse", "delay", "truncate", "reorder", "empty", "shorten", "cut")
ROWS = 2_000
Row = tuple[int, bytes | None, bytes | None, int]


class SpoilingLink:
    """Forwards frames to a broker that advertises this address; `spoils` chooses the fault of each
    fetch response.
    """

    def __init__(self) -> None:
        self.port, self.broker_port = free_ports(2)
        self.spoils: Callable[[], str | None] = lambda: None
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        cut(self._listener)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self.broker_port))
            except OSError:  # the link is closed
                return
            fetches: dict[int, int] = {}
            for forward in (self._requests, self._answers):
                threading.Thread(
                    target=forward, args=(client, broker, fetches), daemon=True
                ).start()

    def _requests(
        self, client: socket.socket, broker: socket.socket, fetches: dict[int, int]
    ) -> None:
        with cut_at_end(client, broker):
            while frame := read_frame(client):
                key, version, correlation = struct.unpack_from(">hhi", frame, 4)
                if key == FETCH:
                    fetches[correlation] = version
                broker.sendall(frame)

    def _answers(
        self, client: socket.socket, broker: socket.socket, fetches: dict[int, int]
    ) -> None:
        before = b""
        with cut_at_end(client, broker):
            while frame := read_frame(broker):
                (correlation,) = struct.unpack_from(">i", frame, 4)
                version = fetches.pop(correlation, None)
                fault = None if version is None else self.spoils()
                match fault:
                    case "cut":
                        return
                    case "truncate":
                        client.sendall(frame[: len(frame) * 2 // 3])
                        return
                    case "reorder":
                        client.sendall(before or frame)
                    case "delay":
                        threading.Event().wait(0.02)
                    case "refuse" | "empty" | "shorten":
                        assert version is not None
                        frame = spoilt(frame, version, fault)
                    case _:
                        pass
                client.sendall(frame)
                before = frame


def spoilt(frame: bytes, version: int, fault: str) -> bytes:
    """Changes the response into another valid one: an error, no batch, or half of the last
    batch.
    """
    _, at = read_response_header(memoryview(frame)[4:], APIS[FETCH], version)
    response = decode(FetchResponse, version, frame[4 + at :])
    for topic in response.responses:
        for index, each in enumerate(topic.partitions):
            assert isinstance(each.records, Buffer | None)
            records = bytes(each.records or b"")
            if fault == "refuse":
                topic.partitions[index] = PartitionData(
                    partition_index=each.partition_index,
                    error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                )
            else:
                kept = b"" if fault == "empty" else records[: len(records) * 2 // 3]
                topic.partitions[index] = msgspec.structs.replace(each, records=kept)
    body = frame[4 : 4 + at] + bytes(encode(response, version))
    return len(body).to_bytes(4) + body


@pytest.fixture(scope="module")
def link() -> Iterator[SpoilingLink]:
    made = SpoilingLink()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{made.broker_port}",
        "advertised.listeners": f"PLAINTEXT://{made.address}",
    }
    with EmbeddedBroker(settings=settings):
        yield made
        made.close()


@pytest.fixture(scope="module")
def written(link: SpoilingLink) -> list[Row]:
    """Writes batches of all codecs and sizes; returns what a plain consumer reads of them."""
    dice = random.Random(1)
    for codec in ("none", "gzip", "lz4", "zstd", "snappy"):
        producer = Producer(
            {"bootstrap.servers": link.address, "compression.type": codec, "linger.ms": 0}
        )
        for n in range(ROWS // 5):
            key = None if n % 7 == 0 else b"%s-%d" % (codec.encode(), n)
            producer.produce("t", dice.randbytes(dice.randrange(200)), key, partition=0)
            if n % 40 == 0:
                producer.flush(30)
        assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": link.address, "group.id": "plain", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[Row] = []
    while len(found) < ROWS:
        message = consumer.poll(30)
        assert message is not None
        if not message.error():
            stamp = message.timestamp()[1]
            found.append((message.offset() or 0, message.key(), message.value(), stamp))
    consumer.close()
    return found


def read(address: str, topic: str, slow: Callable[[], None], *filters: object) -> list[Row]:
    options = {
        "kafka.bootstrap.servers": address,
        "subscribe": topic,
        "kafka.max.partition.fetch.bytes": "6000",
        "kafka.fetch.max.wait.ms": "50",
    }
    reader = FilteringReader(batch_settings(Options(options))[0])
    list(reader.pushFilters(list(filters)))  # type: ignore[arg-type]
    found: list[Row] = []
    for part in reader.partitions():
        for batch in reader.read(part):
            slow()
            columns = [batch.column(name).to_pylist() for name in ("offset", "key", "value")]
            stamps = [each.value // 1000 for each in batch.column("timestamp")]
            found += zip(*columns, stamps, strict=True)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_reader_of_damaged_responses_sees_every_row_once(
    link: SpoilingLink, written: list[Row], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if NATIVE:  # small chunks, so that the consumer slows the decoder in each response
        monkeypatch.setattr("penstock.spark.decode.native.ROWS", 50)
    dice = random.Random(seed)
    happened: list[str] = []

    def fault() -> str | None:
        if dice.random() < 0.3 and len(happened) < 6:
            happened.append(dice.choice(FAULTS))
            return happened[-1]
        return None

    link.spoils = fault
    try:
        assert read(link.address, "t", lambda: wait(dice.random() * 0.01)) == written
    finally:
        link.spoils = lambda: None
    assert happened, "nothing was tried"


def wait(seconds: float) -> None:
    threading.Event().wait(seconds)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((), [0, 1, 2, 3]),
        ((GreaterThanOrEqual(("timestamp",), datetime(1960, 1, 1, tzinfo=UTC)),), [1, 2, 3]),
        ((GreaterThanOrEqual(("timestamp",), datetime(1969, 12, 31, tzinfo=UTC)),), [2, 3]),
        ((GreaterThanOrEqual(("timestamp",), datetime(1970, 1, 1, tzinfo=UTC)),), [3]),
        ((LessThan(("timestamp",), datetime(1970, 1, 1, tzinfo=UTC)),), [0, 1, 2]),
    ],
)
def test_a_time_filter_finds_records_without_timestamp_and_before_1970(
    link: SpoilingLink, filters: tuple[object, ...], expected: list[int]
) -> None:
    day_ms, topic = 86_400_000, f"old-{'-'.join(map(str, expected))}"
    times = (-365 * 30 * day_ms, -day_ms * 365, -1, 5_000)
    records = [Record(0, time, None, None, []) for time in times]
    Producer({"bootstrap.servers": link.address}).list_topics(topic)
    with WireLink(f"127.0.0.1:{link.broker_port}") as wire:
        for record in records:
            data = PartitionProduceData(index=0, records=build_batch([record]))
            answer = wire.ask(
                ProduceRequest(
                    acks=-1,
                    timeout_ms=10_000,
                    topic_data=[TopicProduceData(name=topic, partition_data=[data])],
                ),
                version=9,
            )
            assert isinstance(answer, ProduceResponse)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    found = read(link.address, topic, lambda: None, *filters)
    assert [offset for offset, *_ in found] == expected
