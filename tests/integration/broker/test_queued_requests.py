"""Limits for incoming requests: `queued.max.requests` and `queued.max.request.bytes`."""

import socket
import struct
from contextlib import ExitStack

import pytest

from penstock.testing.broker import EmbeddedBroker
from penstock.wire.apis import api_of
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from support.brokers.wire_link import WireLink

KIB = 1024


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def large_request() -> bytes:
    """A valid request of half a MiB."""
    topics = [MetadataRequestTopic(name="x" * 200) for _ in range(2500)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    return bytes(request_frame(api_of(MetadataRequest), 1, 1, "large", request))


def send_some(sock: socket.socket, data: bytes, within_s: float) -> int:
    """How many bytes the broker reads in that time."""
    sock.settimeout(within_s)
    sent = 0
    try:
        while sent < len(data):
            sent += sock.send(data[sent : sent + 64 * KIB])
    except TimeoutError:
        pass
    return sent


def test_large_requests_wait_for_memory_and_small_ones_do_not() -> None:
    request = large_request()
    settings = {
        "queued.max.request.bytes": str(len(request)),
        "socket.receive.buffer.bytes": "4096",
    }
    with EmbeddedBroker(settings=settings) as broker, ExitStack() as stack:
        holder, waits = (stack.enter_context(connect(broker.bootstrap)) for _ in range(2))
        assert send_some(holder, request[:-1], 10) == len(request) - 1  # all but the last byte
        waits.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        taken = send_some(waits, request, 1)
        assert taken < len(request) * 3 // 4  # the broker stopped reading it
        with WireLink(broker.bootstrap) as small:
            assert isinstance(small.ask(ApiVersionsRequest("x", "1")), ApiVersionsResponse)
        holder.settimeout(20)
        holder.sendall(request[-1:])
        assert len(holder.recv(4)) == 4
        waits.settimeout(20)
        waits.sendall(request[taken:])  # there is room again
        assert len(waits.recv(4)) == 4


def test_a_closed_connection_frees_its_memory() -> None:
    request = large_request()
    with EmbeddedBroker(settings={"queued.max.request.bytes": "1"}) as broker:
        with connect(broker.bootstrap) as holder:
            assert send_some(holder, request[:-1], 10) == len(request) - 1
        with connect(broker.bootstrap) as other:
            other.sendall(request)
            assert len(other.recv(4)) == 4


def test_requests_before_the_login_use_none_of_the_memory() -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "queued.max.request.bytes": "1",
    }
    request = large_request()
    with EmbeddedBroker(settings=settings) as broker:
        listeners = broker.running.state.listeners
        with connect(listeners["SASL_PLAINTEXT"]) as stranger, connect(broker.bootstrap) as other:
            assert send_some(stranger, request[:-1], 10) == len(request) - 1
            other.sendall(request)
            assert len(other.recv(4)) == 4


@pytest.mark.parametrize("limit", ["1", "500"])
def test_requests_over_the_limit_queue_and_all_are_answered(limit: str) -> None:
    with EmbeddedBroker(settings={"queued.max.requests": limit}) as broker, ExitStack() as stack:
        sockets = [stack.enter_context(connect(broker.bootstrap)) for _ in range(20)]
        for number, sock in enumerate(sockets):
            new = CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=1)
            create = CreateTopicsRequest(topics=[new], timeout_ms=10_000)
            sock.sendall(request_frame(api_of(CreateTopicsRequest), 5, 1, "q", create))
        for sock in sockets:
            (size,) = struct.unpack(">i", sock.recv(4))
            assert size > 0
        with WireLink(broker.bootstrap) as link:
            response = link.ask(MetadataRequest(topics=None), 1)
            assert isinstance(response, MetadataResponse)
            assert len(response.topics) == 20
