"""The blocking connection against scripted brokers, and against ours."""

import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import pytest

from penstock.client.address import Address, parse_addresses
from penstock.client.errors import (
    BrokerRefused,
    ConnectionFailed,
    RequestTimedOut,
    UnsupportedVersion,
)
from penstock.client.route import CONTROLLER, ToCoordinator, ToLeader
from penstock.client.sasl import Login
from penstock.errors import ErrorCode
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.client.connection import BlockingConnection, connect
from penstock.spark.client.security import Security
from penstock.spark.client.settings import ClientSettings
from penstock.testing.broker import EmbeddedBroker
from penstock.types import TopicPartition
from penstock.wire.frame import API_VERSIONS, RequestHeader, read_request_header, response_frame
from penstock.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from penstock.wire.messages.fetch import FetchRequest, FetchResponse
from penstock.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from penstock.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from penstock.wire.messages.sasl_handshake import SaslHandshakeResponse
from penstock.wire.schema import Message

Script: TypeAlias = Callable[[RequestHeader], bytes | None]
"""The bytes that answer a request; None closes the connection."""
SPOKEN = [
    ApiVersion(api_key=18, min_version=0, max_version=4),
    ApiVersion(api_key=3, min_version=2, max_version=12),
]


def answer(header: RequestHeader, response: Message) -> bytes:
    frame, _ = response_frame(header.api, header.version, header.correlation_id, response)
    return bytes(frame)


def modern(header: RequestHeader) -> bytes:
    if header.api.key == API_VERSIONS:
        return answer(header, ApiVersionsResponse(api_keys=SPOKEN))
    return answer(header, MetadataResponse(cluster_id=f"asked {header.correlation_id}"))


def after_versions(then: Script) -> Script:
    return lambda header: modern(header) if header.api.key == API_VERSIONS else then(header)


@contextmanager
def scripted(script: Script) -> Iterator[Address]:
    def serve() -> None:
        while True:
            try:
                link, _ = server.accept()
            except OSError:
                return
            with link, link.makefile("rb") as stream:
                while size := stream.read(4):
                    header, _ = read_request_header(stream.read(int.from_bytes(size, "big")))
                    back = script(header)
                    if back is None:
                        break
                    link.sendall(back)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Address(*server.getsockname())
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def connected(script: Script, **limits: int) -> Iterator[BlockingConnection]:
    with scripted(script) as address:
        connection = connect(address, ClientSettings((address,), **limits))  # type: ignore[arg-type]
        try:
            yield connection
        finally:
            connection.close()


def test_responses_are_matched_in_order_whichever_is_awaited_first() -> None:
    with connected(modern) as connection:
        tickets = [connection.send(MetadataRequest(), MetadataResponse) for _ in range(3)]
        assert connection.unanswered == 3
        last, first = connection.receive(tickets[2]), connection.receive(tickets[0])
        assert (first.cluster_id, last.cluster_id) == ("asked 2", "asked 4")
        assert connection.unanswered == 0


def test_a_response_is_received_into_the_callers_buffer() -> None:
    buffer = bytearray(4096)
    with connected(modern) as connection:
        ticket = connection.send(MetadataRequest(), MetadataResponse)
        connection.receive(ticket, into=buffer)
        assert b"asked 2" in buffer


@contextmanager
def logged_in(*logins: SaslAuthenticateResponse) -> Iterator[BlockingConnection]:
    """A connection to a broker that answers successive logins like this."""
    left = iter(logins)

    def script(header: RequestHeader) -> bytes:
        match header.api.name:
            case "ApiVersions":
                keys = [
                    *SPOKEN,
                    ApiVersion(api_key=17, min_version=0, max_version=1),
                    ApiVersion(api_key=36, min_version=0, max_version=2),
                ]
                return answer(header, ApiVersionsResponse(api_keys=keys))
            case "SaslHandshake":
                return answer(header, SaslHandshakeResponse(mechanisms=["PLAIN"]))
            case "SaslAuthenticate":
                return answer(header, next(left))
            case _:
                return modern(header)

    with scripted(script) as address:
        security = Security(login=Login("PLAIN", "ann", "secret"))
        connection = connect(address, ClientSettings((address,), security=security))
        try:
            yield connection
        finally:
            connection.close()


def test_a_login_in_between_does_not_disturb_requests_in_flight() -> None:
    accepted = SaslAuthenticateResponse(session_lifetime_ms=60_000)
    with logged_in(accepted, accepted) as connection:
        first = connection.send(MetadataRequest(), MetadataResponse)
        connection._renew_at = 0
        second = connection.send(MetadataRequest(), MetadataResponse)
        buffer = bytearray(4096)
        assert connection.receive(second, into=buffer).cluster_id == "asked 7"
        assert connection.receive(first).cluster_id == "asked 4"
        assert b"asked 7" in buffer


def test_a_connection_whose_login_is_refused_is_not_used_again() -> None:
    accepted = SaslAuthenticateResponse(session_lifetime_ms=60_000)
    refused = SaslAuthenticateResponse(error_code=58, error_message="no more")
    with logged_in(accepted, refused) as connection:
        connection._renew_at = 0
        for _ in range(2):
            with pytest.raises(BrokerRefused, match="no more"):
                connection.send(MetadataRequest(), MetadataResponse)
        assert not connection.is_open


def test_an_unsupported_api_is_an_error() -> None:
    with connected(modern) as connection, pytest.raises(UnsupportedVersion, match="ListGroups"):
        connection.call(ListGroupsRequest(), ListGroupsResponse)


@pytest.mark.parametrize(
    ("back", "words"),
    [
        (None, "was lost: (closed by the broker|Connection reset)"),
        (b"\x7f\xff\xff\xff", "a response of 2147483647 bytes"),
        (b"\x00\x00\x00\x01", "a response of 1 bytes"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x63\x00", "response 99 instead of 2"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x02\x00", "broke the protocol"),
    ],
)
def test_a_broken_broker_fails_all_requests_in_flight(back: bytes | None, words: str) -> None:
    with connected(after_versions(lambda _: back)) as connection:
        first, second = (connection.send(MetadataRequest(), MetadataResponse) for _ in range(2))
        with pytest.raises(ConnectionFailed, match=words):
            connection.receive(first)
        assert not connection.is_open
        with pytest.raises(ConnectionFailed, match=words):
            connection.receive(second)
        with pytest.raises(ConnectionFailed, match=words):
            connection.send(MetadataRequest(), MetadataResponse)


def test_a_silent_broker_is_given_up_after_the_timeout() -> None:
    with connected(after_versions(lambda _: b"\x00"), request_timeout_ms=30) as connection:
        with pytest.raises(RequestTimedOut, match="did not answer Metadata within 30 ms"):
            connection.call(MetadataRequest(), MetadataResponse)
        assert not connection.is_open


def test_a_client_closed_while_it_connects_stays_closed() -> None:
    clients: list[BlockingClient] = []

    def closing(header: RequestHeader) -> bytes:
        if header.api.key == API_VERSIONS:
            clients[0].close()
        return modern(header)

    with scripted(closing) as address, BlockingClient(ClientSettings((address,))) as client:
        clients.append(client)
        with pytest.raises(ConnectionFailed, match="the client was closed"):
            client.metadata([])


def test_closing_wakes_a_waiting_thread() -> None:
    asked = threading.Event()

    def silent(_: RequestHeader) -> bytes:
        asked.set()
        return b""

    with connected(after_versions(silent)) as connection:
        errors: list[Exception] = []

        def wait() -> None:
            try:
                connection.call(MetadataRequest(), MetadataResponse)
            except ConnectionFailed as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        assert asked.wait(10)
        connection.close()
        thread.join(10)
        assert "was closed" in str(errors[0])


def test_a_refused_connection_names_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname())
    with pytest.raises(ConnectionFailed, match=f"cannot connect to {address}: Connection refused"):
        connect(address, ClientSettings((address,)))


def client(broker: EmbeddedBroker) -> BlockingClient:
    return BlockingClient(
        ClientSettings(tuple(parse_addresses(broker.bootstrap)), timeout_ms=20_000)
    )


def test_a_client_finds_leader_coordinator_and_controller(shared_broker: EmbeddedBroker) -> None:
    with client(shared_broker) as mine:
        topic = mine.retrying(lambda: mine.topic("blocking", create=True))
        place = TopicPartition(topic.name, 0)
        assert list(mine.retrying(lambda: mine.by_leader([place])).values()) == [[place]]
        routes = (ToLeader(place), CONTROLLER, ToCoordinator("a-group"))
        found = {
            mine.retrying(lambda route=route: mine.connection(route)).address  # type: ignore[misc]
            for route in routes
        }
        assert [str(each) for each in found] == [shared_broker.bootstrap]
        answer = mine.call(FetchRequest(), FetchResponse, to=ToLeader(place))
        assert answer.error_code == ErrorCode.NONE


def test_a_missing_topic_is_left_out_or_an_error(shared_broker: EmbeddedBroker) -> None:
    with client(shared_broker) as mine:
        assert mine.existing(["no-such-topic"]) == {}
        with pytest.raises(BrokerRefused, match="no-such-topic"):
            mine.topics(["no-such-topic"])


def test_a_client_reconnects_after_its_connection_broke(shared_broker: EmbeddedBroker) -> None:
    with client(shared_broker) as mine:
        mine.cluster()
        mine.connection(CONTROLLER).close()
        assert mine.call(MetadataRequest(topics=[]), MetadataResponse).brokers


def test_only_retriable_errors_are_retried(shared_broker: EmbeddedBroker) -> None:
    with client(shared_broker) as mine:
        codes = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]

        def attempt() -> str:
            code = codes.pop(0)
            if code:
                raise BrokerRefused(code, "here")
            return "done"

        assert mine.retrying(attempt) == "done"
        codes[:] = [ErrorCode.INVALID_REQUEST]
        with pytest.raises(BrokerRefused, match="INVALID_REQUEST"):
            mine.retrying(attempt)


def test_after_the_timeout_the_latest_error_is_raised(shared_broker: EmbeddedBroker) -> None:
    def attempt() -> None:
        raise BrokerRefused(ErrorCode.LEADER_NOT_AVAILABLE, "partition 7")

    with client(shared_broker) as mine, pytest.raises(BrokerRefused, match="partition 7"):
        mine.retrying(attempt, timeout_ms=1)


def test_settings_can_be_pickled_for_executors() -> None:
    settings = ClientSettings((Address("a", 1),))
    assert pickle.loads(pickle.dumps(settings)) == settings
