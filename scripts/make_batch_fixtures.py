"""Rewrite tests/fixtures/batches: batches made by Apache Kafka's classes and by librdkafka.

Each `<name>.bin` is one record batch; `<name>.json` beside it is Apache Kafka's reading of it. Run
with PYTHONPATH=tests.
"""

import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer

from peers import java

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures" / "batches"
JARS = "kafka-4.3.1"
TIME = 1_700_000_000_000
HEADERS: list[tuple[str, str | bytes | None]] = [
    ("trace", b"\x00\x01\xff"),
    ("null", None),
    ("größe", b""),
    ("", b"\x01"),
]
LARGE = b"several blocks " * 12_000

CASES: dict[str, dict[str, object]] = {
    "none": {},
    "gzip": {"compression.type": "gzip"},
    "snappy": {"compression.type": "snappy"},
    "lz4": {"compression.type": "lz4"},
    "zstd": {"compression.type": "zstd"},
    "idempotent": {"enable.idempotence": True},
    "transactional": {"transactional.id": "tx"},
}


def main() -> None:
    written = dict(java_batches())
    for name, config in CASES.items():
        written[f"librdkafka-{name}"] = librdkafka_batch(config, large=False)
        if "compression.type" in config:
            written[f"librdkafka-{name}-blocks"] = librdkafka_batch(config, large=True)
    lines = "".join(f"{data.hex()}\n" for data in written.values())
    readings = java.run("Batches", "read", jars=JARS, stdin=lines).splitlines()
    FIXTURES.mkdir(parents=True, exist_ok=True)
    for (name, data), reading in zip(written.items(), readings, strict=True):
        (FIXTURES / f"{name}.bin").write_bytes(data)
        (FIXTURES / f"{name}.json").write_text(json.dumps(json.loads(reading), indent=1) + "\n")
        print(f"{name}: {len(data)} bytes")


def java_batches() -> Iterator[tuple[str, bytes]]:
    for line in java.run("Batches", "write", jars=JARS).splitlines():
        name, data = line.split()
        yield name, bytes.fromhex(data)


def librdkafka_batch(config: dict[str, object], *, large: bool) -> bytes:
    """A batch as librdkafka sends it, fetched back from its built-in mock broker."""
    producer = Producer({**config, "test.mock.num.brokers": 1, "linger.ms": 1000})
    if "transactional.id" in config:
        producer.init_transactions(10)
        producer.begin_transaction()
    if large:
        producer.produce("t", LARGE, partition=0, timestamp=TIME)
    else:
        fill(producer)
    producer.flush(10)
    broker = producer.list_topics("t", timeout=10).brokers[1]
    return fetched(broker.host, broker.port)


def fill(producer: Producer) -> None:
    def produce(timestamp: int, key: bytes | None, value: bytes | None, *, headers: bool) -> None:
        with_headers = HEADERS if headers else []
        producer.produce("t", value, key, 0, timestamp=timestamp, headers=with_headers)

    produce(TIME, b"key", b"value", headers=False)
    produce(TIME - 1, b"tombstone", None, headers=False)
    produce(TIME + 70_000, None, b"no key", headers=True)
    produce(TIME + 3, b"", b"", headers=False)
    produce(TIME + 4, b"k" * 100, b"v" * 200, headers=True)


def fetched(host: str, port: int) -> bytes:
    """Fetch v4 of partition 0 of topic `t` from offset 0, built by hand since it is short."""
    body = struct.pack(
        ">hhih iiiib i h1s i iqi",
        *(1, 4, 7, -1),  # API key, version, correlation id, null client id
        *(-1, 1000, 1, 1 << 20, 0),  # replica, wait, least and most bytes, isolation
        *(1, 1, b"t", 1),
        *(0, 0, 1 << 20),  # partition, offset, most bytes
    )
    with socket.create_connection((host, port), timeout=10) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        reader = connection.makefile("rb")
        (size,) = struct.unpack(">i", reader.read(4))
        response = reader.read(size)
    # Correlation id, throttle time, one topic `t`, one partition: number, error, two offsets.
    *_, error, _, _, aborted = struct.unpack_from(">iiih1siihqqi", response)
    assert error == 0, error
    assert aborted <= 0, aborted
    at = struct.calcsize(">iiih1siihqqi")
    (length,) = struct.unpack_from(">i", response, at)
    return response[at + 4 : at + 4 + length]


if __name__ == "__main__":
    main()
