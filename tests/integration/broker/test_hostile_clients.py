"""Unauthenticated clients: what they send before a login costs next to nothing."""

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from support.brokers.wire_link import WireLink

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
MIB = 1 << 20
PRODUCE, METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 0, 3, 17, 18, 36


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_a="a";',
        "connection.failed.authentication.delay.ms": "1",
    }
    with EmbeddedBroker(settings=settings) as broker:
        yield broker.bootstrap


def header(key: int, version: int, *, tags: bytes = b"") -> bytes:
    return struct.pack(">hhih", key, version, 1, 4) + b"evil" + tags


def framed(data: bytes, size: int | None = None) -> bytes:
    return struct.pack(">i", len(data) if size is None else size) + data


HANDSHAKE = framed(header(SASL_HANDSHAKE, 1) + b"\0\x05PLAIN")
TWENTY_MILLION = b"\x80\xda\xc4\x09"
"""As an unsigned varint."""
REQUESTS = {
    "tagged fields in the header (CVE-2026-111115)": framed(
        header(API_VERSIONS, 3, tags=TWENTY_MILLION) + b"\0\0" * 20_000
    ),
    "tagged fields of the body": framed(
        header(API_VERSIONS, 3, tags=b"\0") + b"\x02a\x02a" + TWENTY_MILLION
    ),
    "an array of two billion (CVE-2026-111108)": framed(header(METADATA, 1) + b"\x7f\xff\xff\xff"),
    "a frame of 2 GiB (CVE-2022-34917)": framed(b"", (1 << 31) - 1),
    "a negative frame": framed(b"", -1),
    "a frame above sasl.server.max.receive.size": framed(b"", 524_289),
    "a token of 2 GiB (CVE-2022-34917)": HANDSHAKE
    + framed(header(SASL_AUTHENTICATE, 1) + b"\x7f\xff\xff\xff"),
    "a bare token of 2 GiB": framed(header(SASL_HANDSHAKE, 0) + b"\0\x05PLAIN")
    + framed(b"", (1 << 31) - 1),
    "ApiVersions above 64 KiB": framed(header(API_VERSIONS, 0) + bytes(70_000)),
    "a request before the login": framed(header(METADATA, 1) + b"\xff\xff\xff\xff"),
    "an API that nobody knows": framed(header(30_000, 0)),
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS on a plain listener": bytes.fromhex("16030100c8010000c40303") + bytes(200),
}


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def is_closed(address: str, data: bytes) -> bool:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as sock:
        try:
            sock.sendall(data)
            while sock.recv(65536):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
    return True


@pytest.mark.parametrize("name", REQUESTS)
def test_a_hostile_request_closes_its_connection_and_costs_no_memory(
    address: str, name: str
) -> None:
    assert is_closed(address, REQUESTS[name])
    before = resident_bytes()
    for _ in range(20):
        assert is_closed(address, REQUESTS[name])
    assert resident_bytes() - before < 10 * MIB
    with WireLink(address) as honest:
        assert isinstance(honest.ask(ApiVersionsRequest("x", "1")), ApiVersionsResponse)


def test_many_incomplete_requests_block_nobody(address: str) -> None:
    host, _, port = address.rpartition(":")
    before = resident_bytes()
    slow = [socket.create_connection((host, int(port)), timeout=10) for _ in range(200)]
    try:
        for each in slow:
            each.sendall(framed(b"", 500_000) + b"\0")
        with WireLink(address) as honest:
            assert isinstance(honest.ask(ApiVersionsRequest("x", "1")), ApiVersionsResponse)
        assert (
            resident_bytes() - before < 200 * 524_288 // 2
        )  # less than the sizes that they announced
    finally:
        for each in slow:
            each.close()
