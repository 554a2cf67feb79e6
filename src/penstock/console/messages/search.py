"""A search as a state machine: it names the partition to read next, and takes what was read. Pure.

Partitions are merged by time, independent of the sizes of reads. A record is ordered by the lowest
timestamp so far on the way down its partition (newest first), or the highest on the way up. Within
a partition records stay in offset order, even if their timestamps do not.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from penstock.console.messages.query import Cursor, Span
from penstock.console.messages.scan import Criteria, matching
from penstock.record.batch import BatchHeader, payload
from penstock.record.record import Record
from penstock.types import Buffer

DECOMPRESSED_BYTES: Final = 1 << 30
"""Above the limit of any broker; protects against a corrupt batch."""
PAGE_BYTES: Final = 32 << 20
"""The most bytes of records in a page: a page of large records has fewer of them."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as it was read; `data` is None if consumers do not see it."""

    header: BatchHeader
    data: Buffer | None


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching record, and the header of its batch."""

    partition: int
    record: Record
    header: BatchHeader


@dataclass(slots=True)
class _Found:
    """A hit that waits to be merged; a later search finds it again from the span `before`."""

    order: tuple[int, int]
    hit: Hit
    before: Span


class Search:
    """Finds up to `limit` records, in order; with a limit of 0 it only counts them.

    While `wanted` returns a partition, read it from its position and `take` the batches.
    """

    def __init__(
        self, cursor: Cursor, criteria: Criteria, limit: int, page_bytes: int = PAGE_BYTES
    ) -> None:
        self.hits: list[Hit] = []
        self._hits_bytes, self._page_bytes = 0, page_bytes
        self._query, self._matches, self._scanned = cursor.query, cursor.matches, cursor.scanned
        self._criteria, self._limit = criteria, limit
        self._spans = {each.partition: replace(each) for each in cursor.spans}
        self._waiting: dict[int, deque[_Found]] = {each: deque() for each in self._spans}
        self.goes_down = self._down = cursor.query.newest_first

    @property
    def decodes(self) -> bool:
        return self._criteria.decodes

    @property
    def has_moved(self) -> bool:
        """Whether `cursor` has progressed. Hits that wait for other partitions do not move it."""
        return bool(self.hits) or self.cursor().scanned > self._scanned

    @property
    def is_full(self) -> bool:
        is_long = len(self.hits) >= self._limit or self._hits_bytes >= self._page_bytes
        return bool(self._limit) and is_long

    def wanted(self) -> Span | None:
        """The partition to read next; None if the page is full or everything was searched."""
        if self.is_full:
            return None
        unread = [each for each in self._spans.values() if self._is_unread(each)]
        return min(unread, key=self._order, default=None)

    def take(self, partition: int, batches: Sequence[Batch], reached: int) -> None:
        """Take whole batches from the position on, in offset order.

        Everything up to `reached` was read: missing offsets do not exist.
        """
        span, waiting = self._spans[partition], self._waiting[partition]
        left_bytes = self._page_bytes // len(self._spans)
        for batch in reversed(batches) if self._down else batches:
            header = batch.header
            # Before its records: the page may end among them, and the next one begins behind them.
            self._bound(span, header.max_timestamp if self._down else header.base_timestamp)
            for record in self._found(span, batch):
                before = replace(span)
                self._bound(span, record.timestamp)
                self._move(span, record.offset if self._down else record.offset + 1)
                if not self._limit:
                    self._matches += 1
                    continue
                hit = Hit(partition, record, header)
                waiting.append(_Found(self._order(span), hit, before))
                left_bytes -= size_bytes(record)
                if len(waiting) == self._limit or left_bytes <= 0:  # a page shows no more
                    self._merge()
                    return
            self._move(span, header.base_offset if self._down else header.next_offset)
        self._move(span, reached)
        self._merge()

    def cursor(self) -> Cursor:
        """Where to continue: before the first hit that was not returned."""
        spans = [
            self._waiting[each.partition][0].before if self._waiting[each.partition] else each
            for each in self._spans.values()
        ]
        return Cursor(self._query, [replace(each) for each in spans], self._matches)

    def _found(self, span: Span, batch: Batch) -> Iterator[Record]:
        if batch.data is None:
            return iter(())
        records = payload(batch.data, batch.header, DECOMPRESSED_BYTES)
        low, high = (span.start, span.position) if self._down else (span.position, span.end)
        found = [
            record
            for record in matching(records, batch.header, span.partition, self._criteria)
            if low <= record.offset < high
        ]
        return reversed(found) if self._down else iter(found)

    def _bound(self, span: Span, at_ms: int) -> None:
        """Note that the search has come to a record or batch with this time."""
        span.bound = min(span.bound, at_ms) if self._down else max(span.bound, at_ms)

    def _move(self, span: Span, to: int) -> None:
        forward = min(span.position, to) if self._down else max(span.position, to)
        span.position = min(max(forward, span.start), span.end)

    def _is_unread(self, span: Span) -> bool:
        is_done = span.position == (span.start if self._down else span.end)
        return not is_done and not self._waiting[span.partition]

    def _order(self, span: Span) -> tuple[int, int]:
        return (-span.bound if self._down else span.bound), span.partition

    def _merge(self) -> None:
        """Return the hits that no unread record can precede any more."""
        while not self.is_full:
            heads = [each[0] for each in self._waiting.values() if each]
            if not heads:
                return
            first = min(heads, key=lambda each: each.order)
            unread = (self._order(each) for each in self._spans.values() if self._is_unread(each))
            if any(each < first.order for each in unread):
                return
            self._waiting[first.hit.partition].popleft()
            self.hits.append(first.hit)
            self._hits_bytes += size_bytes(first.hit.record)
            self._matches += 1


def size_bytes(record: Record) -> int:
    """The size of key, value and header values."""
    parts = (record.key, record.value, *(value for _, value in record.headers))
    return sum(len(each) for each in parts if each is not None)
