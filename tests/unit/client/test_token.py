"""Endpoints of keys and tokens that answer badly."""

import socket
from threading import Thread

import pytest

from penstock.client.token import ask
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
def test_what_an_endpoint_does_wrong_is_one_sentence(answer: bytes, says: str) -> None:
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
