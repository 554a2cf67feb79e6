"""Throttles a connection: its requests wait, and its responses are sent at once (KIP-219)."""

import asyncio
from collections.abc import Callable

from penstock.broker.quotas.client_quotas import ClientQuotas


class Mute:
    """For how long a connection handles no request. `on_end` is called after that."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        quotas: ClientQuotas,
        on_end: Callable[[], object],
    ) -> None:
        self._loop, self._quotas, self._on_end = loop, quotas, on_end
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0
        self.is_on = False

    def extend(self, delay_ms: int) -> bool:
        """Last for this long from now on; returns False if it lasts longer already."""
        until = self._loop.time() + delay_ms / 1000
        if until <= self._until:
            return False
        if self._timer is None:
            self._quotas.muted += 1
        else:
            self._timer.cancel()
        self.is_on, self._until = True, until
        self._timer = self._loop.call_later(delay_ms / 1000, self._expire)
        return True

    def _expire(self) -> None:
        self.cancel()
        self._on_end()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self.is_on = None, False
            self._quotas.muted -= 1
