"""Responses with records: pieces in memory, and slices of log files that the kernel sends."""

import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from penstock.errors import ProtocolError
from penstock.log.lookup import LogSlice
from penstock.wire.schema import Splice

MAX_GATHERED: Final = 64

COPIED_BYTES: Final = 1 << 17
"""Up to this size, copying a response's records costs less than two more system calls."""

MSG_MORE: Final = getattr(socket, "MSG_MORE", 0)  # absent on macOS: the header leaves on its own

SendSlice: TypeAlias = Callable[[socket.socket, LogSlice], int]


def send_by_kernel(sock: socket.socket, part: LogSlice) -> int:
    """Send part of a file without reading it; returns how many bytes the socket took."""
    return os.sendfile(sock.fileno(), part.file.fileno(), part.position, part.size_bytes)


def send_first(
    sock: socket.socket, out: deque[memoryview | LogSlice], send_slice: SendSlice
) -> bool:
    """Send the first slice of `out`, or the pieces in memory before it, and remove what was sent.

    Returns False when the socket took only part of it.
    """
    first = out[0]
    if isinstance(first, LogSlice):
        size = first.size_bytes
        sent = send_slice(sock, first)
        if sent == 0:
            raise OSError(f"{first.file} is shorter than it was")
        if sent < size:
            out[0] = LogSlice(first.file, first.position + sent, size - sent)
            return False
        out.popleft()
        return True
    views = list(gathered(out))
    sent = sock.sendmsg(views, (), MSG_MORE if len(views) < len(out) else 0)
    for view in views:
        if sent < len(view):
            out[0] = view[sent:]
            return False
        sent -= len(view)
        out.popleft()
    return True


def gathered(out: Iterable[memoryview | LogSlice]) -> Iterator[memoryview]:
    """The pieces that one call can send: all pieces in memory before the next file slice."""
    for piece in islice(out, MAX_GATHERED):
        if isinstance(piece, LogSlice):
            return
        yield piece


def interleaved(frame: bytearray, splices: Sequence[Splice]) -> list[memoryview | LogSlice]:
    """The pieces of a response in sending order.

    Few records are read into memory instead of sent from their file: one system call instead of
    three.
    """
    pieces: list[memoryview | LogSlice] = []
    is_small = sum([len(region) for _, region in splices]) <= COPIED_BYTES
    view, at = memoryview(frame), 0
    for position, region in splices:
        assert isinstance(region, LogSlice)
        if position > at:
            pieces.append(view[at:position])
        pieces.append(_read(region) if is_small else region)
        at = position
    if at < len(view):
        pieces.append(view[at:])
    return pieces


def _read(region: LogSlice) -> memoryview:
    """The records; the response's size counts them already. They may be truncated meanwhile if the
    response was made in turns.
    """
    data = region.read()
    if len(data) < region.size_bytes:
        raise ProtocolError(f"{region.file.path} is shorter than it was")
    return memoryview(data)
