"""The observed ends of a partition with their times. Pure."""

KEPT = 128


class EndHistory:
    """Observed end offsets, each with its time. When there are too many, every second one is
    dropped, which makes older times less exact.
    """

    def __init__(self, end: int, now_ms: int) -> None:
        self._seen = [(end, now_ms)]

    @property
    def last(self) -> int:
        return self._seen[-1][0]

    def observe(self, end: int, now_ms: int) -> None:
        if end < self.last:  # the log was truncated, or the topic was created again
            self._seen = [(end, now_ms)]
        elif end > self.last:
            self._seen.append((end, now_ms))
            if len(self._seen) > KEPT:
                self._seen = [*self._seen[:-1:2], self._seen[-1]]

    def passed_ms(self, offset: int) -> int:
        """When the end was first observed beyond this offset. If it was so in the first
        observation, the record is older than that.
        """
        return next((at_ms for end, at_ms in self._seen if end > offset), self._seen[-1][1])
