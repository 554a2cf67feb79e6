"""HTTP/1.1 requests and responses as values, without I/O (the needed subset of RFC 9112)."""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeAlias

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TARGET = re.compile(rb"/[\x21-\x7e]*")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_LENGTH = re.compile("[0-9]{1,18}")  # int() refuses numbers of thousands of digits

PLAIN = "text/plain; charset=utf-8"


class BadRequest(Exception):
    """A malformed or unsupported request; the server responds with `status` and closes."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; header names are in lower case, the path is not decoded."""

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
        """The size of the body. Chunked bodies are refused: two ways to give a length
        allow request smuggling.
        """
        if "transfer-encoding" in self.headers:
            raise BadRequest(HTTPStatus.NOT_IMPLEMENTED, "a body must have a Content-Length")
        text = self.headers.get("content-length", "0")
        if not _LENGTH.fullmatch(text):
            raise BadRequest(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        return int(text)


Body: TypeAlias = bytes | Iterable[bytes] | AsyncGenerator[bytes, None]


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response. An iterable body is produced while it is sent; the loop runs between parts."""

    status: HTTPStatus = HTTPStatus.OK
    content_type: str = PLAIN
    body: Body = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def plain(status: HTTPStatus, text: str = "") -> HttpResponse:
    return HttpResponse(status, PLAIN, f"{text or status.phrase}\n".encode())


def read_head(head: bytes) -> HttpRequest:
    """Parse the request line and headers, which end with an empty line."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]) or not _TARGET.fullmatch(words[1]):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "malformed request line")
    method, target, version = words
    if version not in {b"HTTP/1.1", b"HTTP/1.0"}:
        raise BadRequest(
            HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "only HTTP/1.1 and HTTP/1.0 are supported"
        )
    headers = _headers(lines)
    if version == b"HTTP/1.1" and "host" not in headers:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "missing Host header")
    path, _, query = target.decode().partition("?")
    return HttpRequest(method.decode(), path, query, headers, version == b"HTTP/1.0")


def _headers(lines: Iterable[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        value = value.strip(b" \t")
        # White space before the colon and folded lines are refused: both allow request smuggling.
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise BadRequest(HTTPStatus.BAD_REQUEST, "malformed header")
        key = name.decode().lower()
        if key in headers and key in {"content-length", "host", "transfer-encoding"}:
            raise BadRequest(HTTPStatus.BAD_REQUEST, f"duplicate header {key}")
        text = value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def response_head(response: HttpResponse, *, chunked: bool, close: bool) -> bytes:
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
    assert not any("\r" in line or "\n" in line for line in lines), "a header must be a single line"
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _words(text: str) -> set[str]:
    return {word.strip().lower() for word in text.split(",")}
