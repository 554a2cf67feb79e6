"""A manual event loop: calls run when the test advances its time."""

from collections.abc import Callable


class ManualCall:
    """A scheduled call of a `ManualLoop`."""

    def __init__(self, when_s: float, callback: Callable[[], object]) -> None:
        self.when_s, self.callback, self.cancelled = when_s, callback, False

    def cancel(self) -> None:
        self.cancelled = True


class ManualLoop:
    """`call_soon` and `call_later` without threads, selectors or real time."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s
        self._calls: list[ManualCall] = []

    def call_soon(self, callback: Callable[[], object], /) -> ManualCall:
        return self.call_later(0, callback)

    def call_later(self, delay: float, callback: Callable[[], object], /) -> ManualCall:
        call = ManualCall(self.now_s + delay, callback)
        self._calls.append(call)
        return call

    @property
    def waiting(self) -> int:
        return sum(not call.cancelled for call in self._calls)

    def advance(self, seconds: float = 0) -> None:
        """Run all calls due by then, in order, including those that they schedule."""
        until = self.now_s + seconds
        while due := [c for c in self._calls if c.when_s <= until and not c.cancelled]:
            first = min(due, key=lambda call: call.when_s)
            self._calls.remove(first)
            self.now_s = max(self.now_s, first.when_s)
            first.callback()
        self._calls = [call for call in self._calls if not call.cancelled]
        self.now_s = until
