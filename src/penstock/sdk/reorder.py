"""Puts the records of a key back into the order of a logical clock. Pure: time is an argument.

A record waits in the buffer for `hold_ms`: earlier ones of its key that arrive meanwhile pass it.
One that comes too late for that is released at once and marked, since the application may have to
know.
"""

from bisect import insort
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.sdk.logical_clock import LogicalTime, logical_time
from penstock.sdk.record import Record

NO_TIME = LogicalTime(-1, "")


class Released(NamedTuple):
    """A record in its turn; `late`: one behind it in order was released before."""

    record: Record[Any, Any]
    late: bool = False


class _Waiting(NamedTuple):
    time: LogicalTime
    number: int
    """Of arrival: records without a clock, or with equal ones, keep their order."""
    due_ms: int
    record: Any


@dataclass(slots=True)
class _Key:
    waiting: list[_Waiting] = field(default_factory=list)
    last: LogicalTime = NO_TIME


class ReorderBuffer:
    """Holds at most `most` records of a key, and forgets keys that have none waiting."""

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
        """What is released because of it: itself if it is late or has no clock, or the overflow."""
        time = self._time_of(record)
        if time is None:
            return [Released(record)]
        name = self._key_of(record)
        key = self._keys[name] = self._keys.pop(name, _Key())  # the last in order now
        if time < key.last:
            return [Released(record, late=True)]
        self._number += 1
        insort(key.waiting, _Waiting(time, self._number, now_ms + self._hold_ms, record))
        over = len(key.waiting) - self._most
        return [self._pop(key) for _ in range(over)]

    def due(self, now_ms: int) -> Iterator[Released]:
        """What has waited long enough, and what precedes it."""
        for key in list(self._keys.values()):
            while any(each.due_ms <= now_ms for each in key.waiting):
                yield self._pop(key)
        self._forget()

    def drain(self) -> Iterator[Released]:
        """Everything, at the end."""
        for key in self._keys.values():
            while key.waiting:
                yield self._pop(key)

    def _pop(self, key: _Key) -> Released:
        first = key.waiting.pop(0)
        key.last = first.time
        return Released(first.record)

    def _forget(self) -> None:
        """The keys that were quiet for longest, beyond `keys`: their late records pass unmarked."""
        for name in list(self._keys)[: max(0, len(self._keys) - self._most_keys)]:
            if not self._keys[name].waiting:
                del self._keys[name]
