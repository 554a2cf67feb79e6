"""Connections of the console: uvicorn's, with limits. It sets none before the first request."""

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS: Final = 500
"""Browsers that follow a topic keep one each."""
IDLE_S: Final = 30.0
"""From one request to the next, including its headers; at most twice that."""


class BoundedProtocol(H11Protocol):
    """A connection that sends no whole request is closed, and so is one too many: strangers must
    not take all file descriptors, by which nobody else would be served.
    """

    most_connections, idle_s = CONNECTIONS, IDLE_S
    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.abort()
        else:
            self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._look is not None:
            self._look.cancel()

    def _look_later(self) -> None:
        self._look = self.loop.call_later(self.idle_s, self._close_if_idle, self.cycle)

    def _close_if_idle(self, last: object) -> None:
        """`last` is the request of the look before: still the last one, and answered?"""
        if self.cycle is last and (last is None or self.cycle.response_complete):
            self.transport.close()
        else:
            self._look_later()
