"""How many records a batch may have so that it is handled in time. Pure.

The consumer does not poll while a batch is handled. A batch that takes longer than
`max.poll.interval.ms` costs the membership and all the work done on it, and the next batch of that
size would fail too.
"""


class BatchSize:
    """`now` adapts to how long records take; a batch that lasts `allowed_ms` should be cut."""

    def __init__(self, most: int, allowed_ms: int) -> None:
        self._most, self.allowed_ms = most, allowed_ms
        self.now = most

    def note(self, handled: int, took_ms: int) -> None:
        """Adapt to the last batch: the next should take half of `allowed_ms`, and not be cut."""
        fitting = handled * self.allowed_ms // (2 * max(1, took_ms))
        self.now = max(1, min(self._most, fitting))
