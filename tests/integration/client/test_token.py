"""Key and token endpoints that answer badly."""

import socket
from contextlib import suppress
from threading import Event, Thread

import pytest

from penstock.client.endpoint import ask
from penstock.client.token import TokenSource
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"", "cannot reach"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", "is not HTTP"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "answers 503"),
    ],
    ids=["nothing", "another protocol", "cut off", "many headers", "an error"],
)
def test_a_bad_response_of_an_endpoint_is_reported_in_one_sentence(
    answer: bytes, says: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as endpoint:

        def serve() -> None:
            connection, _ = endpoint.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = Thread(target=serve)
        thread.start()
        with pytest.raises(ConfigError, match=says):
            ask("the.setting", f"http://127.0.0.1:{endpoint.getsockname()[1]}/keys")
        thread.join()


@pytest.mark.parametrize(
    "begun",
    [b"", b"HTTP/1.1 200 OK\r\nA: ", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"],
    ids=["first line", "header", "body"],
)
def test_a_response_sent_byte_by_byte_times_out(begun: bytes) -> None:
    """Each byte arrives in time, but the whole response does not."""
    given_up = Event()
    with socket.create_server(("127.0.0.1", 0)) as endpoint:

        def serve() -> None:
            connection, _ = endpoint.accept()
            with connection, suppress(ConnectionError):
                connection.recv(1 << 16)
                connection.sendall(begun)
                for _ in range(100):
                    if given_up.wait(0.1):
                        return
                    connection.sendall(b"x")

        thread = Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{endpoint.getsockname()[1]}/keys"
        with pytest.raises(ConfigError, match=r"cannot reach .*: timed out"):
            ask("the.setting", url, within_s=0.5)
        given_up.set()
        thread.join()


def test_a_response_that_is_not_text_holds_no_token() -> None:
    body = b'{"access_token":"\x87"}'
    with socket.create_server(("127.0.0.1", 0)) as endpoint:

        def serve() -> None:
            connection, _ = endpoint.accept()
            with connection:
                connection.recv(1 << 16)
                head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
                connection.sendall(head + body)

        thread = Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{endpoint.getsockname()[1]}/token"
        with pytest.raises(ConfigError, match="answers without a token"):
            TokenSource(url, "id", "secret").read()
        thread.join()
