"""When the end of a partition passed which offset, as far as it was seen. Pure."""

KEPT = 128


class EndHistory:
    """Ends that were seen, each with its time. When there are too many, every second one is
    forgotten: then older times are less exact.
    """

    def __init__(self, end: int, now_ms: int) -> None:
        self._seen = [(end, now_ms)]

    @property
    def last(self) -> int:
        return self._seen[-1][0]

    def saw(self, end: int, now_ms: int) -> None:
        if end < self.last:  # the log was truncated, or the topic made anew
            self._seen = [(end, now_ms)]
        elif end > self.last:
            self._seen.append((end, now_ms))
            if len(self._seen) > KEPT:
                self._seen = [*self._seen[:-1:2], self._seen[-1]]

    def passed_ms(self, offset: int) -> int:
        """When the end was first seen behind this offset. If it was so from the beginning, the
        record is older than that.
        """
        return next((at_ms for end, at_ms in self._seen if end > offset), self._seen[-1][1])
