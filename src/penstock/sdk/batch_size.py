"""How many records a batch has, such that it is handled in time. Pure.

Nobody polls while a batch is handled. One that takes longer than `max.poll.interval.ms` costs the
membership, and with it all that was done, and the next one would fare no better.
"""


class BatchSize:
    """`now` adapts to how long records take; a batch that lasts `allowed_ms` is to be cut."""

    def __init__(self, most: int, allowed_ms: int) -> None:
        self._most, self.allowed_ms = most, allowed_ms
        self.now = most

    def note(self, handled: int, took_ms: int) -> None:
        """So many took so long: the next batch is to take half of the time, and not be cut."""
        fitting = handled * self.allowed_ms // (2 * max(1, took_ms))
        self.now = max(1, min(self._most, fitting))
