"""HTTP/1.1 requests and responses as values, without I/O (RFC 9112, as little as is needed)."""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeAlias

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TARGET = re.compile(rb"/[\x21-\x7e]*")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")

PLAIN = "text/plain; charset=utf-8"


class BadRequest(Exception):
    """What came is no request that this server reads: it answers `status` and closes."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """A request; header names are in lower case, the path is as it was sent."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    http_1_0: bool = False
    body: bytes = b""

    @property
    def keeps_alive(self) -> bool:
        return not self.http_1_0 and "close" not in _words(self.headers.get("connection", ""))

    @property
    def content_length(self) -> int:
        """The size of the body to be read. Chunked bodies are not: two lengths are one too many."""
        if "transfer-encoding" in self.headers:
            raise BadRequest(HTTPStatus.NOT_IMPLEMENTED, "a body must have a Content-Length")
        text = self.headers.get("content-length", "0")
        if not (text.isascii() and text.isdigit()):
            raise BadRequest(HTTPStatus.BAD_REQUEST, "Content-Length is no number")
        return int(text)


Body: TypeAlias = bytes | Iterable[bytes] | AsyncGenerator[bytes, None]


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. A body in parts is made while it is sent, and the loop runs between them."""

    status: HTTPStatus = HTTPStatus.OK
    content_type: str = PLAIN
    body: Body = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def plain(status: HTTPStatus, text: str = "") -> Response:
    return Response(status, PLAIN, f"{text or status.phrase}\n".encode())


def read_head(head: bytes) -> Request:
    """The request whose line and headers, with the empty line behind them, are `head`."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]) or not _TARGET.fullmatch(words[1]):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "no request line")
    method, target, version = words
    if version not in {b"HTTP/1.1", b"HTTP/1.0"}:
        raise BadRequest(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.1 is spoken here")
    headers = _headers(lines)
    if version == b"HTTP/1.1" and "host" not in headers:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "no Host")
    path, _, query = target.decode().partition("?")
    return Request(method.decode(), path, query, headers, version == b"HTTP/1.0")


def _headers(lines: Iterable[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        value = value.strip(b" \t")
        # No white space before the colon, no folded lines: both serve to smuggle requests.
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise BadRequest(HTTPStatus.BAD_REQUEST, "a header that is none")
        key = name.decode().lower()
        if key in headers and key in {"content-length", "host", "transfer-encoding"}:
            raise BadRequest(HTTPStatus.BAD_REQUEST, f"two headers {key}")
        text = value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def response_head(response: Response, *, chunked: bool, close: bool) -> bytes:
    headers = {"Content-Type": response.content_type, **response.headers}
    if isinstance(response.body, bytes):
        headers["Content-Length"] = str(len(response.body))
    elif chunked:
        headers["Transfer-Encoding"] = "chunked"
    if close:
        headers["Connection"] = "close"
    status = response.status
    lines = [f"HTTP/1.1 {status.value} {status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    assert not any("\r" in line or "\n" in line for line in lines), "a header has one line"
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _words(text: str) -> set[str]:
    return {word.strip().lower() for word in text.split(",")}
