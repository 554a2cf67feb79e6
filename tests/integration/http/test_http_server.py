"""The HTTP server over real sockets, with requests as raw bytes."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from http import HTTPStatus
from http.client import HTTPConnection
from typing import TypeVar

import pytest

from penstock.http.health import healthz, readyz
from penstock.http.message import HttpRequest, HttpResponse, plain
from penstock.http.server import BoundAddress, HttpLimits, Routes, serving

T = TypeVar("T")
CLOSED = b"Connection: close\r\n"


def echoed(request: HttpRequest) -> HttpResponse:
    return plain(HTTPStatus.OK, f"{request.method} {request.query} {request.body!r}")


def in_parts(_: HttpRequest) -> HttpResponse:
    return HttpResponse(body=iter([b"one ", b"", b"two"]))


def in_parts_later(_: HttpRequest) -> HttpResponse:
    async def body() -> AsyncGenerator[bytes, None]:
        for part in (b"three ", b"four"):
            await asyncio.sleep(0)
            yield part

    return HttpResponse(body=body())


async def awaited(_: HttpRequest) -> HttpResponse:
    await asyncio.sleep(0)
    return plain(HTTPStatus.OK, "awaited")


def failing(_: HttpRequest) -> HttpResponse:
    raise ValueError("on purpose")


def breaking_off(_: HttpRequest) -> HttpResponse:
    def body() -> Iterator[bytes]:
        yield b"a part"
        raise ValueError("on purpose")

    return HttpResponse(body=body())


ROUTES: Routes = {
    ("GET", "/healthz"): healthz,
    ("GET", "/echo"): echoed,
    ("POST", "/echo"): echoed,
    ("GET", "/parts"): in_parts,
    ("GET", "/later"): in_parts_later,
    ("GET", "/awaited"): awaited,
    ("GET", "/failing"): failing,
    ("GET", "/breaking-off"): breaking_off,
}


def run(
    scenario: Callable[[BoundAddress], Awaitable[T]],
    routes: Routes = ROUTES,
    limits: HttpLimits | None = None,
) -> T:
    async def main() -> T:
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            async with serving(group, routes, limits=limits) as address:
                result = await scenario(address)
            assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(main())


def exchange(data: bytes, limits: HttpLimits | None = None) -> bytes:
    """All bytes that the server answers until it closes the connection."""

    async def scenario(address: BoundAddress) -> bytes:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(data)
        try:
            return await reader.read()
        finally:
            writer.close()

    return run(scenario, limits=limits)


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: here", *headers]
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_a_request_is_answered_with_its_size_and_type() -> None:
    answer = exchange(get("/healthz", "Connection: close"))
    head, body = answer.split(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 200 OK",
        b"Content-Type: text/plain; charset=utf-8",
        b"Content-Length: 3",
        b"Connection: close",
    ]
    assert body == b"OK\n"


def test_one_connection_serves_many_requests_even_if_pipelined() -> None:
    answer = exchange(get("/healthz") * 3 + get("/echo?a=b", "Connection: close"))
    assert answer.count(b"200 OK") == 4
    assert answer.endswith(b"GET a=b b''\n")


def test_the_standard_library_reads_every_kind_of_body() -> None:
    def ask(address: BoundAddress) -> list[tuple[int, bytes]]:
        connection = HTTPConnection(*address, timeout=10)
        answers = []
        try:
            for path in ("/parts", "/later", "/awaited", "/healthz", "/nowhere"):
                connection.request("GET", path)
                response = connection.getresponse()
                answers.append((response.status, response.read()))
            connection.request("POST", "/echo", body=b"posted")
            answers.append((connection.getresponse().status, b""))
        finally:
            connection.close()
        return answers

    assert run(lambda address: asyncio.to_thread(ask, address)) == [
        (200, b"one two"),
        (200, b"three four"),
        (200, b"awaited\n"),
        (200, b"OK\n"),
        (404, b"Not Found\n"),
        (200, b""),
    ]


def test_head_returns_headers_without_a_body() -> None:
    for path in ("/healthz", "/parts"):
        answer = exchange(get(path, "Connection: close", method="HEAD"))
        assert status(answer) == 200
        assert answer.endswith(b"\r\n\r\n")


def test_http_1_0_gets_a_body_that_ends_with_the_connection() -> None:
    answer = exchange(b"GET /parts HTTP/1.0\r\n\r\n")
    assert answer.endswith(b"\r\n\r\none two")
    assert b"chunked" not in answer


def test_a_wrong_method_is_answered_with_the_allowed_ones() -> None:
    answer = exchange(get("/echo", "Connection: close", method="DELETE"))
    assert status(answer) == 405
    assert b"Allow: GET, POST, HEAD\r\n" in answer


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /healthz\r\n\r\n", 400),
        (b"GET healthz HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"GET /healthz HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", 400),
        (get("/healthz", "Bad Name: x"), 400),
        (get("/healthz", "Folded: x", " more"), 400),
        (get("/healthz", "Space : x"), 400),
        (get("/healthz", "Bare: a\nb"), 400),
        (get("/healthz", "Nul: \0"), 400),
        (get("/echo", "Content-Length: 1", "Content-Length: 2"), 400),
        (get("/echo", "Content-Length: -1"), 400),
        (get("/echo", "Content-Length: ²"), 400),
        (get("/echo", "Content-Length: " + "9" * 5_000), 400),
        (get("/echo", "Transfer-Encoding: chunked"), 501),
        (get("/echo", "Content-Length: 1048577"), 413),
        (get("/echo", "Long: " + "x" * 20_000), 431),
    ],
)
def test_a_bad_request_is_rejected_and_the_connection_closed(data: bytes, code: int) -> None:
    answer = exchange(data)
    assert status(answer) == code
    assert CLOSED in answer
    assert answer.count(b"HTTP/1.1") == 1 + (code == 505)


@pytest.mark.parametrize("path", ["/../healthz", "/%68ealthz", "//healthz", "/healthz/"])
def test_a_path_must_match_exactly(path: str) -> None:
    assert status(exchange(get(path, "Connection: close"))) == 404


def test_a_failing_handler_gives_status_500_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = exchange(get("/failing") + get("/healthz", "Connection: close"))
    assert status(answer) == 500
    assert answer.endswith(b"OK\n")
    assert "on purpose" in caplog.text


def test_an_interrupted_body_never_looks_complete(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer = exchange(get("/breaking-off"))
    assert b"a part" in answer
    assert not answer.endswith(b"0\r\n\r\n")
    assert "on purpose" in caplog.text


def test_an_idle_client_is_disconnected() -> None:
    assert exchange(b"GET /healthz HTT", HttpLimits(idle_s=0.05)) == b""


def test_a_client_that_does_not_send_its_body_is_disconnected() -> None:
    request = get("/echo", "Content-Length: 5") + b"abc"
    assert exchange(request, HttpLimits(transfer_s=0.05)) == b""


def test_a_client_that_does_not_read_uses_little_memory_and_is_disconnected() -> None:
    made = 0
    given_up = asyncio.Event()

    def endless(_: HttpRequest) -> HttpResponse:
        def body() -> Iterator[bytes]:
            nonlocal made
            try:
                while True:
                    made += 1
                    yield bytes(65536)
            finally:
                given_up.set()

        return HttpResponse(body=body())

    async def scenario(address: BoundAddress) -> None:
        reader, writer = await asyncio.open_connection(*address, limit=1024)
        writer.write(get("/endless"))
        await reader.readuntil(b"\r\n\r\n")
        await given_up.wait()
        writer.close()

    run(scenario, {("GET", "/endless"): endless}, HttpLimits(transfer_s=0.1))
    assert made < 400  # only what fills the kernel's own buffers


def test_clients_beyond_the_limit_are_rejected_until_one_leaves() -> None:
    async def scenario(address: BoundAddress) -> list[int]:
        reader, first = await asyncio.open_connection(*address)
        first.write(get("/healthz"))
        await reader.readuntil(b"OK\n")
        codes = []
        reader, second = await asyncio.open_connection(*address)
        codes.append(status(await reader.read()))
        second.close()
        first.close()
        async with asyncio.timeout(10):
            while codes[-1] != 200:
                reader, second = await asyncio.open_connection(*address)
                second.write(get("/healthz", "Connection: close"))
                codes.append(status(await reader.read()))
                second.close()
        return codes

    codes = run(scenario, limits=HttpLimits(connections=1))
    assert codes[0] == 503
    assert codes[-1] == 200


def test_a_large_body_without_a_login_is_refused_before_it_arrives() -> None:
    """Otherwise a thousand such bodies would fill the memory before their logins are checked."""

    async def admit(request: HttpRequest) -> HttpResponse | None:
        return None if "authorization" in request.headers else plain(HTTPStatus.UNAUTHORIZED)

    async def scenario(address: BoundAddress) -> list[int]:
        found = []
        for size, sent, login in ((1 << 20, 0, ()), (9, 9, ()), (1 << 20, 1 << 20, ("known",))):
            lines = [f"Content-Length: {size}", *(f"Authorization: {each}" for each in login)]
            reader, writer = await asyncio.open_connection(*address)
            writer.write(get("/echo", "Connection: close", *lines, method="POST") + bytes(sent))
            async with asyncio.timeout(10):
                found.append(status(await reader.read()))
            writer.close()
        return found

    async def main() -> list[int]:
        async with asyncio.TaskGroup() as group, serving(group, ROUTES, admit=admit) as address:
            return await scenario(address)

    assert asyncio.run(main()) == [401, 200, 200]


def test_large_bodies_of_many_connections_share_a_limit() -> None:
    """Each would be within its own, and all of them would fill the memory."""
    size = 1 << 20

    async def scenario(address: BoundAddress) -> list[int]:
        def head(path: str, length: int) -> bytes:
            return get(path, "Connection: close", f"Content-Length: {length}", method="POST")

        async def asked(length: int, sent: bytes) -> int:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(head("/echo", length) + sent)
            found = status(await reader.read())
            writer.close()
            return found

        reader, writer = await asyncio.open_connection(*address)
        writer.write(head("/echo", size) + bytes(size - 1))
        await writer.drain()
        found = [await asked(size, b""), await asked(9, bytes(9))]
        writer.write(b"x")
        found.append(status(await reader.read()))
        writer.close()
        found.append(await asked(size, bytes(size)))
        return found

    limits = HttpLimits(body_bytes=size, all_bodies_bytes=size, transfer_s=5)
    assert run(scenario, limits=limits) == [429, 200, 200, 200]


def test_readiness_names_the_failed_checks() -> None:
    state = {"log": True, "metadata": False}
    handler = readyz({"log": lambda: state["log"], "metadata": lambda: state["metadata"]})
    request = HttpRequest("GET", "/readyz", "", {})
    assert handler(request) == plain(HTTPStatus.SERVICE_UNAVAILABLE, "not ready: metadata")
    state["metadata"] = True
    assert handler(request) == plain(HTTPStatus.OK)
