"""Frames and their headers, as a broker reads and writes them: a four-byte size, then the message.

Headers of flexible versions have tagged fields too, except the response to ApiVersions. It has the
oldest header at every version, because the client reads it before it knows which versions the
broker supports (KIP-511).
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, cast

from penstock.errors import ProtocolError
from penstock.types import Buffer
from penstock.wire.apis import APIS, Api
from penstock.wire.codec import encoder
from penstock.wire.primitives import MALFORMED, MalformedError, reason, skip_tags
from penstock.wire.schema import Message, Splice

API_VERSIONS: Final = 18
CONTROLLED_SHUTDOWN: Final = 7

FIXED: Final = Struct(">hhi")
WITH_CLIENT_ID: Final = Struct(">hhih")
_START: Final = Struct(">ii")
_FLEXIBLE_START: Final = Struct(">iix")
_SIZE: Final = Struct(">i")
_API_KEY: Final = Struct(">h")
SMALL_BYTES: Final = 4096
GROWTH_BYTES: Final = 65536


class FrameHeldBack(Exception):
    """There is no memory for a large frame now. Nothing is lost: receive again later."""


class FrameBuffer:
    """Receives into one buffer and returns frames as views of it.

    Receive into `space()`, call `received(n)`, then take frames by `next()` until it returns None.
    A frame is valid until the next `space()`: a request that waits copies what it needs before. The
    declared size is checked against the limit first, and the buffer grows with the bytes received,
    so a peer that only announces a large frame costs no memory.

    `reserve` is called with the size of a large frame before the buffer grows for it; if it returns
    False, `FrameHeldBack` is raised. A buffer that has grown beyond `kept_bytes` is not kept for
    the next frame.
    """

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.reserve: Callable[[int], bool] | None = None
        self.kept_bytes = 1 << 62
        self._buffer = memoryview(bytearray(SMALL_BYTES))
        self._start = self._end = 0
        self._largest = 0

    def space(self) -> memoryview:
        """Free room to receive into; invalidates the frames returned before."""
        capacity = len(self._buffer)
        if self._start == self._end:
            self._start = self._end = 0
            # Shrink, but only after a while without large frames.
            self._largest -= self._largest >> 4
            if capacity > GROWTH_BYTES and self._largest < capacity // 4:
                self._resize(capacity // 2)
        elif self._start and self._start + self._needed() > capacity:
            unread = self._buffer[self._start : self._end]
            self._buffer[: len(unread)] = unread
            self._start, self._end = 0, len(unread)
        if self._end == capacity:
            grown = max(2 * capacity, GROWTH_BYTES)
            needed = self._needed()
            if needed > GROWTH_BYTES and self.reserve is not None and not self.reserve(needed):
                raise FrameHeldBack
            self._resize(min(grown, needed) if needed > capacity else grown)
        return self._buffer[self._end :]

    def received(self, count: int) -> None:
        self._end += count

    @property
    def pending_bytes(self) -> int:
        """Bytes received and not yet taken as frames."""
        return self._end - self._start

    @property
    def has_frame(self) -> bool:
        """Whether `next` would return a frame."""
        return self.pending_bytes >= self._needed()

    @property
    def next_api_key(self) -> int | None:
        """The API key of the next frame; None until that frame is complete."""
        if self.pending_bytes < max(6, self._needed()):
            return None
        return cast("int", _API_KEY.unpack_from(self._buffer, self._start + 4)[0])

    def next(self) -> memoryview | None:
        """The next complete frame without its size; None until more is received."""
        if self._start == self._end:  # as after most requests
            return None
        needed = self._needed()
        if self._end - self._start < needed:
            return None
        frame = self._buffer[self._start + 4 : self._start + needed]
        self._start += needed
        if needed > self.kept_bytes and self._start == self._end:
            # The frame keeps the large buffer alive until it is handled; an idle connection must
            # not.
            self.trim()
        else:
            self._largest = max(self._largest, needed)
        return frame

    def trim(self) -> None:
        """Give back the memory of an empty buffer."""
        if self._start == self._end and len(self._buffer) > SMALL_BYTES:
            self._buffer = memoryview(bytearray(SMALL_BYTES))
            self._start = self._end = self._largest = 0

    def _needed(self) -> int:
        """Bytes of the first frame in the buffer, including its size field."""
        if self._end - self._start < 4:
            return 4
        (size,) = _SIZE.unpack_from(self._buffer, self._start)
        if not 0 <= size <= self.max_frame_bytes:
            limit = f"[0, {self.max_frame_bytes}]"
            raise ProtocolError(f"frame of {size} bytes: outside {limit}{_foreign(size)}")
        return 4 + cast("int", size)

    def _resize(self, capacity: int) -> None:
        # Views of the old buffer keep it alive for as long as they are held.
        unread = self._buffer[self._start : self._end]
        self._buffer = memoryview(bytearray(capacity))
        self._buffer[: len(unread)] = unread
        self._start, self._end = 0, len(unread)


def _foreign(size: int) -> str:
    """A hint if the size is really the first bytes of another protocol."""
    first = _SIZE.pack(size)
    if first.startswith(b"\x16\x03"):
        return " (a TLS handshake: this listener speaks plain text)"
    if first in {b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI"}:
        return " (an HTTP request: this listener speaks Kafka's protocol)"
    return ""


class RequestHeader:
    """The API, its version, the client, and the correlation id that the response must repeat."""

    def __init__(
        self,
        api: Api,
        version: int,
        correlation_id: int,
        client_id: str | None,
    ) -> None:
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id


def read_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """The header of a request, and the position of its body."""
    at = 0
    try:
        key, version, correlation_id, size = WITH_CLIENT_ID.unpack_from(frame)
        api = APIS.get(key)
        if api is None:
            raise MalformedError(f"unknown API key {key}")
        if key == CONTROLLED_SHUTDOWN and version == 0:
            return RequestHeader(api, version, correlation_id, None), FIXED.size
        at = 10
        client_id = None
        if size >= 0:
            at += size
            if at > len(frame):
                raise MalformedError(f"client id of {size} bytes")
            client_id = str(frame[10:at], "utf-8")
        if version >= api.flexible:
            tags = frame[at]
            at += 1
            if tags:
                at = skip_tags(frame, at, tags)
    except MALFORMED as error:
        raise ProtocolError(
            f"request header: {reason(error)} at byte {at} of {len(frame)}"
        ) from None
    return RequestHeader(api, version, correlation_id, client_id), at


def response_start(api: Api, version: int, correlation_id: int) -> bytearray:
    """The header of a response, after room for the size of its frame."""
    if version >= api.flexible and api.key != API_VERSIONS:
        return bytearray(_FLEXIBLE_START.pack(0, correlation_id))
    return bytearray(_START.pack(0, correlation_id))


def response_frame(
    api: Api, version: int, correlation_id: int, response: Message
) -> tuple[bytearray, Sequence[Splice]]:
    """A response's bytes, and the record regions to send between them."""
    frame = response_start(api, version, correlation_id)
    splices = encoder(type(response), version)(response, frame)
    set_size(frame, splices)
    return frame, splices


def set_size(frame: bytearray, splices: Sequence[Splice]) -> None:
    """Write the frame's size, with that of the regions to send between its bytes, at its start."""
    size = len(frame) - 4
    if splices:
        size += sum(len(region) for _, region in splices)
    _SIZE.pack_into(frame, 0, size)
