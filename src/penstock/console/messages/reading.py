"""Reads partitions for a search: upwards piece by piece, or downwards window by window.

Kafka can only fetch upwards. To go downwards, a window of offsets below the position is read
upwards; its size adapts to the sizes of records, so that a window is a few pieces.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from penstock.console.messages.fetching import Fetched
from penstock.console.messages.query import Span
from penstock.console.messages.search import Batch, Search
from penstock.errors import ErrorCode, KafkaError

FIRST_WINDOW: Final = 200
"""In offsets: about as many as a page shows."""
WINDOW_BYTES: Final = 4 << 20
WIDEST_BYTES: Final = 16 << 20
"""A window that turns out larger is halved and read again."""


class RecordsGone(KafkaError):
    """A partition ends before the range of the search, because its leader lost records."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class PieceReader(Protocol):
    """Fetches pieces of a topic."""

    async def fetch(self, partition: int, offset: int) -> Fetched: ...

    async def ahead(self, partition: int, offset: int) -> None: ...


async def advance(
    search: Search, reader: PieceReader, goes_on: Callable[[], bool], window: int = FIRST_WINDOW
) -> None:
    """Search until it is full or done. Stops when `goes_on` returns False, but only
    after some progress.
    """
    windows: dict[int, int] = {}
    while (span := search.wanted()) is not None:
        if search.goes_down:
            size = windows.get(span.partition, window)
            batches, reached, windows[span.partition] = await _below(reader, span, size)
        else:
            batches, reached = await _above(reader, span)
        if search.decodes:
            await asyncio.to_thread(search.take, span.partition, batches, reached)
        else:
            search.take(span.partition, batches, reached)
        if not goes_on() and search.has_moved:
            return


async def _above(reader: PieceReader, span: Span) -> tuple[list[Batch], int]:
    found = await reader.fetch(span.partition, span.position)
    reached = _next(found, span.partition, span.position, span.end)
    if reached < span.end:
        await reader.ahead(span.partition, reached)
    return found.batches, reached


async def _below(reader: PieceReader, span: Span, size: int) -> tuple[list[Batch], int, int]:
    """The batches of the window below the position, its lower end, and the next window's size."""
    low = max(span.start, span.position - size)
    at, batches, size_bytes = low, list[Batch](), 0
    while at < span.position:
        found = await reader.fetch(span.partition, at)
        at = _next(found, span.partition, at, span.position)
        batches += (each for each in found.batches if each.header.base_offset < span.position)
        size_bytes += found.size_bytes
        if size_bytes > WIDEST_BYTES and span.position - low > 1:
            return await _below(reader, span, (span.position - low) // 2)
        if at < span.position:
            await reader.ahead(span.partition, at)
    read = span.position - low
    wider = min(read * WINDOW_BYTES // max(size_bytes, 1), read * 8)
    below = max(wider, 1)
    reached = min(low, batches[0].header.base_offset) if batches else low
    if reached > span.start:
        await reader.ahead(span.partition, max(span.start, reached - below))
    return batches, reached, below


def _next(found: Fetched, partition: int, at: int, end: int) -> int:
    """The offset to read next; `end` if there is nothing more before it."""
    if found.batches:
        return max(at, found.batches[-1].header.next_offset)
    if at < found.log_start:
        return min(found.log_start, end)
    if found.end < end:
        raise RecordsGone(f"partition {partition} ends at {found.end}, the search began with {end}")
    return end
