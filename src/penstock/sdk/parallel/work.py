"""Chooses the record to handle next, keeping the requested order. Pure.

Records of one lane (a key, a partition) are handled one after the other, in the order in which they
were added; lanes run concurrently. A hanging record holds up only its lane.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from itertools import chain
from typing import Any, Generic, TypeVar

from penstock.sdk.record import PartitionId, Record

T = TypeVar("T", bound=Record[Any, Any])


class Order(Enum):
    """Which records stay in order."""

    KEY = "key"
    """Records of one key in one partition; records without a key are not ordered."""
    PARTITION = "partition"
    NONE = "none"


def lane_of(order: Order) -> Callable[[Record[Any, Any]], Hashable | None]:
    """Returns a function for the lane of a record; None: the record is ordered with no other."""
    match order:
        case Order.KEY:
            return lambda record: (
                None if record.key is None else (record.topic, record.partition, record.key)
            )
        case Order.PARTITION:
            return lambda record: (record.topic, record.partition)
        case Order.NONE:
            return lambda _: None


class Work(Generic[T]):
    """Waiting records, and records in progress."""

    def __init__(self, lane: Callable[[Record[Any, Any]], Hashable | None]) -> None:
        self._lane = lane
        self._ready: deque[T] = deque()
        self._blocked: dict[Hashable, deque[T]] = {}
        """Waiting records by lane, for each lane whose first record is ready or in progress."""
        self._in_progress: dict[PartitionId, list[int]] = {}
        """Offsets; one from a former assignment may occur twice."""
        self._waiting: dict[PartitionId, int] = {}
        self.waiting = 0
        self.in_progress = 0

    def add(self, record: T) -> None:
        self.waiting += 1
        at = record.topic, record.partition
        self._waiting[at] = self._waiting.get(at, 0) + 1
        lane = self._lane(record)
        if lane is None:
            self._ready.append(record)
            return
        behind = self._blocked.get(lane)
        if behind is None:
            self._blocked[lane] = deque()
            self._ready.append(record)
        else:
            behind.append(record)

    def next(self) -> T | None:
        """The record to handle now; None if all waiting records are behind others."""
        if not self._ready:
            return None
        record = self._ready.popleft()
        self.waiting -= 1
        self.in_progress += 1
        at = record.topic, record.partition
        self._waiting[at] -= 1
        self._in_progress.setdefault(at, []).append(record.offset)
        return record

    def done(self, record: T) -> None:
        """A record that `next` returned is finished or given up."""
        self.in_progress -= 1
        at = record.topic, record.partition
        self._in_progress[at].remove(record.offset)
        if not self._in_progress[at]:
            del self._in_progress[at]
        lane = self._lane(record)
        if lane is None:
            return
        behind = self._blocked[lane]
        if behind:
            self._ready.append(behind.popleft())
        else:
            del self._blocked[lane]

    def drop(self, partitions: Iterable[PartitionId]) -> None:
        """Forget waiting records of these partitions; records in progress go on."""
        gone = set(partitions)
        self._keep(lambda each: _at(each) not in gone)

    def shed(self, partition: PartitionId, most: int) -> int | None:
        """Forget the last waiting records of this partition until `most` are left; returns the
        first forgotten offset, to read again from, or None.

        Records before one in progress stay: otherwise that one would be read again too.
        """
        waiting = [each for each in self._ready if _at(each) == partition]
        for behind in self._blocked.values():
            waiting += [each for each in behind if _at(each) == partition]
        running = self._in_progress.get(partition, [])
        offsets = sorted(each.offset for each in waiting)[max(0, most - len(running)) :]
        offsets = [each for each in offsets if each > max(running, default=-1)]
        if not offsets:
            return None
        start = offsets[0]
        self._keep(lambda each: _at(each) != partition or each.offset < start)
        return start

    def _keep(self, is_kept: Callable[[T], bool]) -> None:
        running = self._lanes_in_progress()
        self._ready = deque(each for each in self._ready if is_kept(each))
        for lane, behind in list(self._blocked.items()):
            self._blocked[lane] = deque(each for each in behind if is_kept(each))
        heads = {self._lane(each) for each in self._ready}
        for lane in [each for each in self._blocked if each not in heads and each not in running]:
            del self._blocked[lane]
        self._waiting = {}
        for each in chain(self._ready, *self._blocked.values()):
            self._waiting[_at(each)] = self._waiting.get(_at(each), 0) + 1
        self.waiting = sum(self._waiting.values())

    def in_progress_of(self, partitions: Iterable[PartitionId]) -> int:
        return sum(len(self._in_progress.get(each, ())) for each in partitions)

    def waiting_of(self, partitions: Iterable[PartitionId]) -> int:
        return sum(self._waiting.get(each, 0) for each in partitions)

    def _lanes_in_progress(self) -> set[Hashable]:
        heads = {self._lane(each) for each in self._ready}
        return {lane for lane in self._blocked if lane not in heads}


def _at(record: Record[Any, Any]) -> PartitionId:
    return record.topic, record.partition
