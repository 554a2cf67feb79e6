"""Frames over a Unix socket, by callbacks of the loop: neither side needs a task."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MAX_FRAME = 256 << 20
"""The longest frame, larger than a tree of a million nodes. A longer one means damage."""
MAX_UNSENT = 256 << 20
"""The limit of unsent bytes, above which a peer that does not read is given up."""
RECEIVED = 1 << 18
BACKLOG = 128


def listening(path: Path) -> socket.socket:
    """A socket that only this user can connect to; what was at the path before is replaced."""
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(0)
    sock.bind(os.fspath(path))
    path.chmod(0o600)  # not listening yet, so no other user has connected
    sock.listen(BACKLOG)
    return sock


class FrameConnection:
    """Calls `on_frame` with each frame, and `on_lost` once unless `close` was called before."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        on_frame: Callable[[bytes], None],
        on_lost: Callable[[], None],
    ) -> None:
        sock.settimeout(0)
        self._loop, self._sock, self._on_frame, self._on_lost = loop, sock, on_frame, on_lost
        self._received, self._unsent = bytearray(), bytearray()
        self._closed = False
        loop.add_reader(sock, self._receive)

    def send(self, frame: bytes) -> None:
        if self._closed:
            return
        was_empty = not self._unsent
        self._unsent += len(frame).to_bytes(4, "big")
        self._unsent += frame
        if was_empty:
            self._flush()
        if len(self._unsent) > MAX_UNSENT:
            self._loop.call_soon(self._lose)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._sock)
            self._loop.remove_writer(self._sock)
            self._sock.close()

    def _lose(self) -> None:
        if not self._closed:
            self.close()
            self._on_lost()

    def _receive(self) -> None:
        try:
            data = self._sock.recv(RECEIVED)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        self._received += data
        while not self._closed and len(self._received) >= 4:
            size = int.from_bytes(self._received[:4], "big")
            if size > MAX_FRAME:
                self._lose()
                return
            if len(self._received) < 4 + size:
                return
            frame = bytes(self._received[4 : 4 + size])
            del self._received[: 4 + size]
            self._on_frame(frame)

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._sock.send(self._unsent)]
        except BlockingIOError:
            self._loop.add_writer(self._sock, self._flush)
            return
        except OSError:
            # In the next turn: the caller is about to register what it waits for.
            self._unsent.clear()
            self._loop.call_soon(self._lose)
        with suppress(OSError, ValueError):
            self._loop.remove_writer(self._sock)
