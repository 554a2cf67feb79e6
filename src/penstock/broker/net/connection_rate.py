"""How many connections are accepted in a second: `max.connection.creation.rate` (KIP-612)."""

PER_SECOND_MS = 1000


class ConnectionRate:
    """Counts the connections accepted in the current second. Time is an argument."""

    def __init__(self) -> None:
        self._since_ms = 0
        self._accepted = 0

    def wait_ms(self, now_ms: int, rate: int) -> int:
        """How long to wait before accepting the next connection; 0 for not at all."""
        if now_ms - self._since_ms >= PER_SECOND_MS:
            self._since_ms, self._accepted = now_ms, 0
        return 0 if self._accepted < rate else self._since_ms + PER_SECOND_MS - now_ms

    def accepted(self) -> None:
        self._accepted += 1
