"""The memory of large requests, over all connections: `queued.max.request.bytes`.

A request counts with its whole size, from its first bytes beyond a small buffer until it is
answered, so that an admitted request can always finish. As in Kafka a request is admitted while any
byte is left, so one request at most exceeds the limit. Other connections with large requests are
not read meanwhile.
"""

import os
from collections.abc import Callable
from typing import Final

STALLED_S: Final = 30.0
SLOWEST_BYTES_S: Final = 1 << 20
"""While others wait for request memory, a request may take `STALLED_S`, and a second more per
`SLOWEST_BYTES_S`, to arrive. Sending a byte now and then does not extend that.
"""
MACHINE_SHARE: Final = 4
"""Without a configured limit, large requests take at most one part in this many of the machine's
memory.
"""


class RequestMemory:
    """Counts the reserved bytes. Belongs to the event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes, self.used_bytes = limit_bytes, 0
        self._waiting: dict[Callable[[], object], None] = {}

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def reserve(self, size_bytes: int, on_room: Callable[[], object]) -> bool:
        """Reserve memory, if any is left; otherwise return False and call `on_room` when some is
        free.
        """
        if self.used_bytes >= self.limit_bytes:
            self._waiting[on_room] = None
            return False
        self.used_bytes += size_bytes
        return True

    def release(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        woken = list(self._waiting) if self.used_bytes < self.limit_bytes else []
        for on_room in woken:
            del self._waiting[on_room]
        for on_room in woken:
            on_room()

    def forget(self, on_room: Callable[[], object]) -> None:
        """Remove the callback of a closed connection."""
        self._waiting.pop(on_room, None)


class Reservation:
    """The memory that one connection holds for its large request."""

    def __init__(self, memory: RequestMemory, on_room: Callable[[], object]) -> None:
        self._memory, self._on_room = memory, on_room
        self.size_bytes = 0
        self._since_s = 0.0

    def grow(self, size_bytes: int, now_s: float) -> bool:
        """Hold so many bytes; returns False if there is no room, and `on_room` is called later."""
        if not self._memory.reserve(size_bytes - self.size_bytes, self._on_room):
            return False
        self.size_bytes, self._since_s = size_bytes, now_s
        return True

    def is_overdue(self, now_s: float) -> bool:
        """Whether it has been held for longer than receiving so many bytes may take."""
        allowed_s = STALLED_S + self.size_bytes / SLOWEST_BYTES_S
        return bool(self.size_bytes) and now_s - self._since_s > allowed_s

    def release(self) -> None:
        size_bytes = self.size_bytes
        if size_bytes:
            self.size_bytes = 0
            self._memory.release(size_bytes)

    def forget(self) -> None:
        """Wait for room no more: the connection is closed."""
        self._memory.forget(self._on_room)


def request_memory(queued_max_request_bytes: int) -> RequestMemory:
    """The memory as configured; -1 means a share of the machine's memory."""
    if queued_max_request_bytes > 0:
        return RequestMemory(queued_max_request_bytes)
    machine_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return RequestMemory(machine_bytes // MACHINE_SHARE)
