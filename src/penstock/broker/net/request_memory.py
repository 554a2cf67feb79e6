"""The memory of large requests, over all connections: `queued.max.request.bytes`.

A request is counted from its first bytes beyond a small buffer until it is answered, with its whole
size: whoever was let in can finish. As in Kafka it is let in while any byte is left, so that the
limit is passed by at most one request. Other connections are not read from meanwhile.
"""

import os
from collections.abc import Callable
from typing import Final

MACHINE_SHARE: Final = 4
"""Without a limit of its own, large requests take at most this part of the machine's memory."""


class RequestMemory:
    """Belongs to the event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes, self.used_bytes = limit_bytes, 0
        self._waiting: dict[Callable[[], object], None] = {}

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def reserve(self, size_bytes: int, on_room: Callable[[], object]) -> bool:
        """Whether there is room; if not, `on_room` is called when it is worth another try."""
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
        """The connection is closed."""
        self._waiting.pop(on_room, None)


def request_memory(queued_max_request_bytes: int) -> RequestMemory:
    """As the setting says; -1 means a share of the machine's memory."""
    if queued_max_request_bytes > 0:
        return RequestMemory(queued_max_request_bytes)
    machine_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return RequestMemory(machine_bytes // MACHINE_SHARE)
