"""Puts the records of a key back into the order of a logical clock. Pure: time is an argument.

A record waits in the buffer for `hold_ms`; earlier records of its key that arrive meanwhile pass
it. A record that comes too late for that is released at once and marked as late, since the
application may have to know.
"""

from bisect import insort
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.sdk.logical_clock import LogicalTime, logical_time
from penstock.sdk.record import Record

NO_TIME = LogicalTime(-1, "")


class Released(NamedTuple):
    """A released record; `late`: a record that belongs after it was released before."""

    record: Record[Any, Any]
    late: bool = False


class _Waiting(NamedTuple):
    time: LogicalTime
    number: int
    """Order of arrival, which is kept among records with equal clocks."""
    due_ms: int
    record: Any


@dataclass(slots=True)
class _Key:
    waiting: list[_Waiting] = field(default_factory=list)
    last: LogicalTime = NO_TIME


class ReorderBuffer:
    """Holds at most `most` records of a key, and forgets idle keys beyond `keys`."""

    def __init__(
        self,
        hold_ms: int,
        *,
        most: int = 1_000,
        keys: int = 100_000,
        key_of: Callable[[Record[Any, Any]], Hashable] = lambda record: record.key,
        time_of: Callable[[Record[Any, Any]], LogicalTime | None] = logical_time,
    ) -> None:
        self._hold_ms, self._most, self._most_keys = hold_ms, most, keys
        self._key_of, self._time_of = key_of, time_of
        self._keys: dict[Hashable, _Key] = {}
        self._number = 0

    def __len__(self) -> int:
        return sum(len(each.waiting) for each in self._keys.values())

    def add(self, record: Record[Any, Any], now_ms: int) -> list[Released]:
        """Returns what is released now: the record if it is late or has no clock, or overflow."""
        time = self._time_of(record)
        if time is None:
            return [Released(record)]
        name = self._key_of(record)
        key = self._keys[name] = self._keys.pop(name, _Key())  # moved to the end of the order
        if time < key.last:
            return [Released(record, late=True)]
        self._number += 1
        insort(key.waiting, _Waiting(time, self._number, now_ms + self._hold_ms, record))
        over = len(key.waiting) - self._most
        return [self._pop(key) for _ in range(over)]

    def due(self, now_ms: int) -> Iterator[Released]:
        """Records that have waited long enough, and those that precede them."""
        for key in list(self._keys.values()):
            while any(each.due_ms <= now_ms for each in key.waiting):
                yield self._pop(key)
        self._forget()

    def drain(self) -> Iterator[Released]:
        """All records, at the end."""
        for key in self._keys.values():
            while key.waiting:
                yield self._pop(key)

    def _pop(self, key: _Key) -> Released:
        first = key.waiting.pop(0)
        key.last = first.time
        return Released(first.record)

    def _forget(self) -> None:
        """Forget the longest idle keys beyond `keys`; their late records are not marked."""
        for name in list(self._keys)[: max(0, len(self._keys) - self._most_keys)]:
            if not self._keys[name].waiting:
                del self._keys[name]
