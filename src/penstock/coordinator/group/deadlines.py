"""The next deadline of each group, and the earliest of all."""

from heapq import heappop, heappush


class GroupDeadlines:
    """The next deadline of each group.

    A heartbeat only moves deadlines later, and changes nothing here: the timer fires at the old
    deadline, `expire` finds nothing due, and the new deadline is set then.
    """

    def __init__(self) -> None:
        self._queue: list[tuple[int, str]] = []
        self._due_ms: dict[str, int] = {}

    def set(self, group: str, due_ms: int | None, now_ms: int) -> None:
        known_ms = self._due_ms.get(group)
        if due_ms is None:
            self._due_ms.pop(group, None)
        elif known_ms is None or due_ms < known_ms or known_ms <= now_ms:
            self._due_ms[group] = due_ms
            heappush(self._queue, (due_ms, group))

    def first(self) -> tuple[int, str] | None:
        """The earliest deadline and its group."""
        while self._queue:
            due_ms, group = self._queue[0]
            if self._due_ms.get(group) == due_ms:
                return due_ms, group
            heappop(self._queue)
        return None
