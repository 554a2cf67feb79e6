"""Random requests of every API, with existing names and extreme values: no internal errors.

Parsers are fuzzed elsewhere (`tests/fuzz`); here the handlers get what the parsers accept.
"""

import logging
import random
import socket
from collections.abc import Sequence
from contextlib import closing, suppress
from struct import error as StructError  # noqa: N812  an exception of the standard library
from typing import Any

import pytest

from penstock.record.build import build_batch
from penstock.record.record import Record
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.schema import Array, Kind, Message, fields
from support.brokers.wire_link import WireLink

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
REQUESTS_OF_EACH = 12
PATIENCE_S = 0.5
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXTS = [
    "t",
    "u",
    "g",
    "m",
    "n",
    "*",
    "0",
    "1",
    "-1",
    "100",
    "range",
    "consumer",
    "user",
    "client-id",
    "ip",
    "127.0.0.1",
    "User:x",
    "kafka-cluster",
    "__consumer_offsets",
    "dlq.t",
    "retention.ms",
    "errors.deadletterqueue.topic.name",
    "share.version",
    "producer_byte_rate",
    "share.record.lock.duration.ms",
    "PLAIN",
    "a/b",
    "é",
]
EXTREME_TEXTS = ["", "\0", "x" * 300, "x" * 32_767, "x" * 40_000]
BATCHES = [bytes(build_batch([Record(0, 1, b"k", b"v", [])])), b"", b"no batch at all" * 5]
COORDINATED = {0: "g", 1: "g", 2: "g:AAAAAAAAAAAAAAAAAAAAAA:0"}


class RandomRequests:
    """Makes messages; `ids` are topic ids that they may name."""

    def __init__(self, seed: int, ids: Sequence[bytes]) -> None:
        self.chance, self._ids = random.Random(seed), ids

    def message(self, kind: type[Message], version: int) -> Message:
        return kind(
            **{
                each.name: self._value(each.name, each.kind, version, nullable=each.nullable)
                for each in fields(kind, version)
            }
        )

    def _value(self, name: str, kind: Kind, version: int, *, nullable: bool = False) -> Any:
        chance = self.chance
        if nullable and chance.random() < 0.15:
            return None
        if isinstance(kind, Array):
            count = chance.choice((0, 1, 1, 1, 2, 3))
            return [self._value(name, kind.item, version) for _ in range(count)]
        if not isinstance(kind, str):
            return self.message(kind, version)
        if kind in BITS:
            return self._number(name, 1 << BITS[kind] - 1)
        choices: dict[str, Any] = {
            "bool": (True, False),
            "uint16": (0, 9092, 65535),
            "float64": (0.0, 1.5, -1.0, 1e300, float("nan"), float("inf")),
            "string": TEXTS if chance.random() < 0.9 else EXTREME_TEXTS,
            "bytes": (b"", b"\0", b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff", chance.randbytes(20)),
            "records": BATCHES,
            "uuid": (*self._ids, bytes(16), chance.randbytes(16)),
        }
        return chance.choice(choices[kind])

    def _number(self, name: str, bound: int) -> int:
        if "wait" in name or "timeout" in name:
            return min(self.chance.choice((0, 1, 100, -1, 6000)), bound - 1)
        usual = (0, 0, 0, 1, 1, 2, 3, 4, 5, -1, -2, 10, 16, 100)
        wild = (bound - 1, -bound, self.chance.randrange(-bound, bound))
        return self.chance.choice(usual if self.chance.random() < 0.85 else wild)


class Asking:
    """Sends requests and ignores the responses; connects again after a request without one."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        self._socket = socket.create_connection(self._address, timeout=PATIENCE_S)

    def ask(self, frame: bytes | bytearray) -> None:
        if self._socket.fileno() < 0:
            self._socket = socket.create_connection(self._address, timeout=PATIENCE_S)
        try:
            self._socket.sendall(frame)
            left = int.from_bytes(self._received(4), "big")
            while left:
                left -= len(self._received(min(left, 1 << 16)))
        except OSError:  # refused, or it waits for something
            self._socket.close()

    def _received(self, size: int) -> bytes:
        data = self._socket.recv(size)
        if not data:
            raise ConnectionError
        return data

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("seed", [1, 5])
def test_no_request_is_an_internal_error(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedBroker(settings=SETTINGS) as broker:
        for name in ("t", "u"):
            broker.create_topic(name, 2)
        with WireLink(broker.bootstrap) as link:
            for key_type, key in COORDINATED.items():
                link.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]))
        services = broker.running.services
        ids = [topic.id for topic in services.cluster.image.topics.values()]
        served = [api for key, api in APIS.items() if services.listeners.serves(key, "PLAINTEXT")]
        made = RandomRequests(seed, ids)
        asked = served * REQUESTS_OF_EACH
        made.chance.shuffle(asked)
        with closing(Asking(broker.bootstrap)) as client, caplog.at_level(logging.WARNING):
            for api in asked:
                version = made.chance.choice((api.high, made.chance.randint(api.low, api.high)))
                request = made.message(api.request, version)
                with suppress(StructError):  # a long text does not fit into old versions
                    client.ask(request_frame(api, version, 1, "random", request))
                failed = [each for each in caplog.records if each.exc_info]
                assert not failed, f"{api.name} v{version}: {request!s:.1000}"
        with WireLink(broker.bootstrap) as link:
            link.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
