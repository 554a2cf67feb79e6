"""Decides when a read ends that continues until no more records come."""

from collections.abc import Sequence
from typing import Final

POLL_S: Final = 0.5
"""How long a consumer waits for records at a time."""
JOIN_S: Final = 30.0


class Idle:
    """Over after `idle_s` without records. Joining a group takes seconds, in which no records can
    come: that time does not count, up to JOIN_S.
    """

    def __init__(self, idle_s: float | None) -> None:
        self._idle_s = idle_s
        self._waited_s = self._joining_s = 0.0
        self.timeout_s = POLL_S if idle_s is None else min(POLL_S, idle_s)

    def is_over(self, batch: Sequence[object], *, has_joined: bool) -> bool:
        """Call it after each wait of `timeout_s`, with the records that it brought."""
        if batch:
            self._waited_s = 0.0
        elif has_joined or self._joining_s >= JOIN_S:
            self._waited_s += self.timeout_s
        else:
            self._joining_s += self.timeout_s
        return self._idle_s is not None and self._waited_s >= self._idle_s
