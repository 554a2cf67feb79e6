"""Files that were renamed for removal, and how long they still have to stay."""

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class DelayedRemovals(Generic[T]):
    """Each item is due its delay after the first call of `due` that sees it.

    By the monotonic clock: a wall clock that is set back would keep files longer. Callers of `add`
    need no clock.
    """

    __slots__ = ("_unseen", "_waiting")

    def __init__(self) -> None:
        self._unseen: list[tuple[int, T]] = []
        self._waiting: list[tuple[int, T]] = []

    def add(self, delay_ms: int, what: T) -> None:
        self._unseen.append((delay_ms, what))

    def due(self, monotonic_ms: int) -> list[T]:
        """The items that are due now; they are dropped from here."""
        if self._unseen:
            self._waiting += [(monotonic_ms + delay, what) for delay, what in self._unseen]
            self._unseen.clear()
        if not self._waiting:
            return []
        found = [what for due_ms, what in self._waiting if due_ms <= monotonic_ms]
        if found:
            self._waiting = [each for each in self._waiting if each[0] > monotonic_ms]
        return found

    def __len__(self) -> int:
        return len(self._unseen) + len(self._waiting)

    def __iter__(self) -> Iterator[T]:
        return (what for _, what in [*self._waiting, *self._unseen])
