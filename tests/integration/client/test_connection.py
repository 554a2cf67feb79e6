"""A connection to scripted brokers: old, slow, malicious or gone."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import pytest

from penstock.client.address import Address
from penstock.client.connection import Connection, connect, refused_everywhere
from penstock.client.errors import (
    BrokerRefused,
    ConnectionFailed,
    ConnectionRefused,
    RequestTimedOut,
    UnsupportedVersion,
)
from penstock.errors import ErrorCode
from penstock.types import Buffer
from penstock.wire.apis import APIS, api_of
from penstock.wire.frame import API_VERSIONS, RequestHeader, read_request_header, response_frame
from penstock.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from penstock.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from penstock.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from penstock.wire.negotiation import api_versions_refusal
from penstock.wire.schema import Message

T = TypeVar("T")
Broker: TypeAlias = Callable[[RequestHeader], bytes | None]
"""The response to a request; None closes the connection."""
SPOKEN = [
    ApiVersion(api_key=18, min_version=0, max_version=4),
    ApiVersion(api_key=3, min_version=2, max_version=99),
    ApiVersion(api_key=0, min_version=77, max_version=99),
    ApiVersion(api_key=30_000, min_version=0, max_version=1),
]


def answer(header: RequestHeader, response: Message, version: int | None = None) -> bytes:
    spoken = header.version if version is None else version
    frame, _ = response_frame(header.api, spoken, header.correlation_id, response)
    return bytes(frame)


def modern(header: RequestHeader) -> bytes:
    if header.api.key == API_VERSIONS:
        return answer(header, ApiVersionsResponse(api_keys=SPOKEN))
    return answer(header, MetadataResponse(cluster_id=f"asked in {header.version}"))


@asynccontextmanager
async def broker(script: Broker) -> AsyncIterator[tuple[Address, list[RequestHeader]]]:
    asked: list[RequestHeader] = []

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while size := await reader.read(4):
                frame = await reader.readexactly(int.from_bytes(size, "big"))
                header, _ = read_request_header(frame)
                asked.append(header)
                back = script(header)
                if back is None:
                    break
                writer.write(back)
        finally:
            writer.close()

    server = await asyncio.start_server(session, "127.0.0.1", 0)
    try:
        yield Address(*server.sockets[0].getsockname()), asked
    finally:
        server.close()


def run(
    script: Broker, scenario: Callable[[Connection], Awaitable[T]]
) -> tuple[T, list[RequestHeader]]:
    async def main() -> tuple[T, list[RequestHeader]]:
        async with asyncio.timeout(20), broker(script) as (address, asked):
            connection = await connect(address, client_id="me")
            try:
                return await scenario(connection), asked
            finally:
                await connection.close()

    return asyncio.run(main())


async def metadata(connection: Connection) -> str | None:
    response = await connection.call(MetadataRequest(), MetadataResponse, timeout_ms=10_000)
    return response.cluster_id


def test_each_api_is_called_in_the_highest_common_version() -> None:
    words, asked = run(modern, metadata)
    assert words == f"asked in {APIS[3].high}"
    assert [(each.api.name, each.version, each.client_id) for each in asked] == [
        ("ApiVersions", 4, "me"),
        ("Metadata", APIS[3].high, "me"),
    ]


def fetched(header: RequestHeader) -> bytes:
    if header.api.key == API_VERSIONS:
        keys = [SPOKEN[0], ApiVersion(api_key=1, min_version=4, max_version=18)]
        return answer(header, ApiVersionsResponse(api_keys=keys))
    part = PartitionData(partition_index=0, records=b"%d" % header.correlation_id * 100)
    topic = FetchableTopicResponse(partitions=[part])
    return answer(header, FetchResponse(responses=[topic]))


def test_records_are_copies_unless_views_are_requested() -> None:
    async def scenario(connection: Connection) -> Buffer:
        async def records(*, as_view: bool) -> Buffer:
            response = await connection.call(
                FetchRequest(), FetchResponse, timeout_ms=10_000, as_view=as_view
            )
            (part,) = response.responses[0].partitions
            assert isinstance(part.records, memoryview if as_view else bytes)
            return part.records

        kept, as_view = await records(as_view=False), await records(as_view=True)
        assert (kept, bytes(as_view)) == (b"2" * 100, b"3" * 100)
        again = await records(as_view=True)
        assert bytes(as_view) == bytes(again) == b"4" * 100  # received into the same buffer
        return kept

    kept, _ = run(fetched, scenario)
    assert kept == b"2" * 100


def test_views_are_copied_if_another_response_is_in_flight() -> None:
    async def scenario(connection: Connection) -> Buffer:
        connection.interrupt_wait()  # nothing is in flight, so nothing is sent
        fetching = connection.send(FetchRequest(), FetchResponse, as_view=True)
        connection.interrupt_wait()
        (part,) = (await fetching).responses[0].partitions
        # The response of this request comes after the other one's, or overwrites it.
        await connection.call(FetchRequest(), FetchResponse, timeout_ms=10_000)
        assert isinstance(part.records, bytes)
        return part.records

    kept, asked = run(fetched, scenario)
    assert kept == b"2" * 100
    assert [each.api.key for each in asked] == [API_VERSIONS, 1, API_VERSIONS, 1]


def test_api_versions_is_retried_in_a_version_that_an_older_broker_supports() -> None:
    def older(header: RequestHeader) -> bytes:
        if header.api.key == API_VERSIONS and header.version > 2:
            refusal = ApiVersionsResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)],
            )
            return answer(header, refusal, version=0)
        return modern(header)

    _, asked = run(older, metadata)
    assert [each.version for each in asked[:2]] == [4, 2]


def test_api_versions_is_retried_in_version_0_after_unsupported_version() -> None:
    def oldest(header: RequestHeader) -> bytes:
        if header.api.key == API_VERSIONS and header.version > 0:
            refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            return answer(header, refusal, version=0)
        return modern(header)

    _, asked = run(oldest, metadata)
    assert [each.version for each in asked[:2]] == [4, 0]


def test_our_own_brokers_unsupported_version_response_is_understood() -> None:
    def ours(header: RequestHeader) -> bytes:
        if len(seen) == 0:
            seen.append(header)
            return bytes(api_versions_refusal(header.correlation_id))
        return modern(header)

    seen: list[RequestHeader] = []
    _, asked = run(ours, metadata)
    assert [each.version for each in asked[:2]] == [4, APIS[API_VERSIONS].high]


def test_another_error_of_api_versions_is_raised() -> None:
    def refusing(header: RequestHeader) -> bytes:
        return answer(
            header, ApiVersionsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        )

    with pytest.raises(BrokerRefused, match="CLUSTER_AUTHORIZATION_FAILED"):
        run(refusing, metadata)


def test_an_api_without_a_common_version_is_not_sent() -> None:
    async def scenario(connection: Connection) -> None:
        with pytest.raises(UnsupportedVersion, match="ListGroups"):
            await connection.call(ListGroupsRequest(), ListGroupsResponse, timeout_ms=1_000)
        assert await metadata(connection)

    _, asked = run(modern, scenario)
    assert len(asked) == 2


def test_requests_are_pipelined() -> None:
    held: list[bytes] = []

    def lazy(header: RequestHeader) -> bytes:
        if header.api.key == API_VERSIONS:
            return modern(header)
        held.append(modern(header))
        return b"".join(held) if len(held) == 3 else b""

    async def scenario(connection: Connection) -> list[str | None]:
        futures = [connection.send(MetadataRequest(), MetadataResponse) for _ in range(3)]
        futures[1].cancel()
        return [(await futures[n]).cluster_id for n in (0, 2)]

    words, _ = run(lazy, scenario)
    assert words == [f"asked in {APIS[3].high}"] * 2


def mad(data: bytes) -> Broker:
    def script(header: RequestHeader) -> bytes:
        return modern(header) if header.api.key == API_VERSIONS else data

    return script


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x00\x00\x00\x04\x00\x00\x00\x63", "response"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x63\x00", "response 99 instead of 2"),
        (b"\x00\x00\x00\x06\x00\x00\x00\x02\x00\x00", "Metadata"),
        (b"\xff\xff\xff\xff", "frame of -1 bytes"),
        (b"\x7f\xff\xff\xff", "frame of 2147483647 bytes"),  # CVE-2026-10142
        (b"HTTP/1.1 400 Bad Request\r\n", "frame of"),
    ],
)
def test_a_broker_that_breaks_the_protocol_is_disconnected(data: bytes, why: str) -> None:
    async def scenario(connection: Connection) -> None:
        futures = [connection.send(MetadataRequest(), MetadataResponse) for _ in range(2)]
        for future in futures:
            with pytest.raises(ConnectionFailed, match=why):
                await future
        assert not connection.is_open
        with pytest.raises(ConnectionFailed, match=why):
            connection.send(MetadataRequest(), MetadataResponse)

    run(mad(data), scenario)


def test_a_response_without_a_request_closes_the_connection() -> None:
    def eager(header: RequestHeader) -> bytes:
        return modern(header) * 2 if header.api.key == 3 else modern(header)

    async def scenario(connection: Connection) -> None:
        assert await metadata(connection)
        with pytest.raises(ConnectionFailed, match="without a request"):
            await metadata(connection)

    run(eager, scenario)


def test_a_broker_that_answers_late_is_disconnected() -> None:
    async def scenario(connection: Connection) -> None:
        with pytest.raises(RequestTimedOut, match="did not answer Metadata within 50 ms") as caught:
            await connection.call(MetadataRequest(), MetadataResponse, timeout_ms=50)
        assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert not connection.is_open

    run(mad(b""), scenario)


def test_a_lost_connection_fails_the_requests_in_flight() -> None:
    def leaving(header: RequestHeader) -> bytes | None:
        return modern(header) if header.api.key == API_VERSIONS else None

    async def scenario(connection: Connection) -> None:
        with pytest.raises(ConnectionFailed, match="lost") as caught:
            await metadata(connection)
        assert caught.value.code is ErrorCode.NETWORK_EXCEPTION

    run(leaving, scenario)


def test_a_refused_connection_and_a_silent_broker_are_different_errors() -> None:
    async def main() -> None:
        async with broker(lambda _: b"") as (address, _):
            with pytest.raises(ConnectionFailed, match="did not answer within 50 ms"):
                await connect(address, client_id="me", timeout_ms=50)
        with pytest.raises(ConnectionFailed, match="cannot connect"):
            await connect(address, client_id="me")

    asyncio.run(main())


class TwoAddresses(asyncio.SelectorEventLoop):
    """A loop in which every host has an IPv4 and an IPv6 address, as `localhost` often has."""

    async def getaddrinfo(self, _host: Any, port: Any, **_: Any) -> Any:  # type: ignore[override]
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]


@pytest.mark.parametrize("source", [None, "127.0.0.1"])
def test_a_host_refuses_if_all_of_its_addresses_refuse(source: str | None) -> None:
    """This is how brokers notice that another broker's process is gone."""

    async def main() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            address = Address("two.example", taken.getsockname()[1])
            with pytest.raises(ConnectionRefused, match="nothing listens"):
                await connect(address, client_id="c", source=source)

    with asyncio.Runner(loop_factory=TwoAddresses) as runner:
        runner.run(main())


def test_another_error_at_one_of_several_addresses_is_no_refusal() -> None:
    assert refused_everywhere(OSError("Multiple exceptions: [Errno 111] a, [Errno 111] b"))
    assert not refused_everywhere(OSError("Multiple exceptions: [Errno 111] a, [Errno 113] b"))
    assert not refused_everywhere(OSError("no address"))


def test_an_api_is_found_by_its_request_and_its_response() -> None:
    assert api_of(MetadataRequest) is api_of(MetadataResponse) is APIS[3]


class Closed(asyncio.Transport):
    """Like TLS of Python 3.11.2, which loses its protocol when it is closed twice."""

    def get_extra_info(self, name: str, default: object = None) -> object:  # noqa: ARG002
        return default

    def close(self) -> None:
        pass

    def abort(self) -> None:
        raise AttributeError


def test_a_lost_connection_is_not_aborted_again() -> None:
    async def lose() -> None:
        connection = Connection(Address("localhost", 1), "me", "test")
        connection.connection_made(Closed())
        connection.abort()  # lost, but not notified yet
        connection.connection_lost(None)
        connection.abort()

    asyncio.run(lose())
