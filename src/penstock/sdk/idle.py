"""When a read ends that is to go on until nothing comes any more."""

from collections.abc import Sequence
from typing import Final

POLL_S: Final = 0.5
"""How long a consumer waits for records at a time."""
JOIN_S: Final = 30.0


class Idle:
    """Over after `idle_s` without records. Joining a group takes seconds, in which none can come:
    they do not count, unless it takes so long that there is nothing to join for.
    """

    def __init__(self, idle_s: float | None) -> None:
        self._idle_s = idle_s
        self._waited_s = self._joining_s = 0.0
        self.timeout_s = POLL_S if idle_s is None else min(POLL_S, idle_s)

    def is_over(self, batch: Sequence[object], *, has_joined: bool) -> bool:
        """After each wait of `timeout_s`, with what it brought."""
        if batch:
            self._waited_s = 0.0
        elif has_joined or self._joining_s >= JOIN_S:
            self._waited_s += self.timeout_s
        else:
            self._joining_s += self.timeout_s
        return self._idle_s is not None and self._waited_s >= self._idle_s
