"""Limits how often wrong passwords may be tried. Pure."""

from collections import deque
from contextlib import suppress
from typing import Final

WINDOW_MS: Final = 60_000
PER_NAME: Final = 5
"""Failures of one name from one address."""
PER_ADDRESS: Final = 50
"""Failures of all names from one address."""
REMEMBERED: Final = 10_000


class LoginLimit:
    """Counts failures of the last minute per address, and per address and name."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str | None], deque[int]] = {}

    def wait_ms(self, address: str, name: str | None, now_ms: int) -> int:
        """How long to wait before the next try; 0: none. Without a name, only the
        address's limit applies.
        """
        keys = ((address, None), PER_ADDRESS), ((address, name), PER_NAME)
        waits = [0]
        for key, most in keys if name is not None else keys[:1]:
            failures = self._failures.get(key, deque())
            while failures and failures[0] <= now_ms - WINDOW_MS:
                failures.popleft()
            if len(failures) >= most:
                waits.append(failures[0] + WINDOW_MS - now_ms)
        return max(waits)

    def tried(self, address: str, name: str | None, now_ms: int) -> None:
        """Count a failure before the password is checked, so that concurrent tries count too."""
        for key in {(address, None), (address, name)}:
            self._failures.setdefault(key, deque(maxlen=PER_ADDRESS)).append(now_ms)
        while len(self._failures) > REMEMBERED:
            del self._failures[next(iter(self._failures))]

    def passed(self, address: str, name: str | None, tried_ms: int) -> None:
        """Take the counted failure back: the password was right."""
        for key in {(address, None), (address, name)}:
            with suppress(KeyError, ValueError):  # already expired
                self._failures[key].remove(tried_ms)
