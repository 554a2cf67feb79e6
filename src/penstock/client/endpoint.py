"""Requests to an HTTP endpoint: of a token issuer, or of its keys. Blocks."""

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from typing import Any, Final
from urllib.parse import urlsplit

from penstock.errors import ConfigError

MAX_BYTES: Final = 1 << 20
TIMEOUT_S: Final = 10.0
"""Time-out of each socket operation."""
ANSWER_S: Final = 20.0
"""Time-out of a whole response: one sent byte by byte would hold a thread forever."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Trusts only the address in the settings, not where it redirects to."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _UntilDeadline(RawIOBase):
    """Reads from a connection until the deadline."""

    def __init__(self, sock: Any, raw: RawIOBase, end_s: float) -> None:
        self._sock, self._raw, self._end_s = sock, raw, end_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(min(left_s, TIMEOUT_S))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _connecting(kind: Any, end_s: float, **given: Any) -> Any:
    """Makes connections of this kind whose responses, with their headers, end by the deadline."""

    def response(sock: Any, *args: Any, **kwargs: Any) -> Any:
        made: Any = HTTPResponse(sock, *args, **kwargs)
        made.fp = BufferedReader(_UntilDeadline(sock, made.fp.detach(), end_s))
        return made

    def connection(host: str, **settings: Any) -> Any:
        made = kind(host, **settings, **given)
        made.response_class = response
        return made

    return connection


class _Http(urllib.request.HTTPHandler):
    def __init__(self, end_s: float) -> None:
        super().__init__()
        self._connecting = _connecting(HTTPConnection, end_s)

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._connecting, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, end_s: float, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._connecting = _connecting(HTTPSConnection, end_s, context=context)

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._connecting, req)


def ask(
    name: str,
    url: str,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    trusted: str | None = None,
    *,
    within_s: float = ANSWER_S,
) -> bytes:
    """The endpoint's response; `trusted` is a PEM file that replaces the system's authorities."""
    end_s = time.monotonic() + within_s
    try:
        context = ssl.create_default_context(cafile=trusted)
        opener = urllib.request.build_opener(_NoRedirects, _Http(end_s), _Https(end_s, context))
        request = urllib.request.Request(url, data, dict(headers or {}))  # noqa: S310 - checked
        with opener.open(request, timeout=TIMEOUT_S) as response:
            found: bytes = response.read(MAX_BYTES)
            return found
    except urllib.error.HTTPError as error:
        error.close()
        raise ConfigError(f"{name}: {shown(url)} answers {error.code}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        text = getattr(reason, "strerror", None) or reason
        raise ConfigError(f"{name}: cannot reach {shown(url)}: {text}") from None
    except HTTPException:  # for example a truncated response
        raise ConfigError(f"{name}: {shown(url)} answers something that is not HTTP") from None


def shown(url: str) -> str:
    """The URL without password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{parts.path}"
