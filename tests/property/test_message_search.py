"""A search finds what a filter over all records finds, however it is read, stopped and resumed."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.console.messages.fetching import Fetched
from penstock.console.messages.query import (
    LARGEST,
    SEARCHED_PARTS,
    Cursor,
    SearchQuery,
    begun,
    cursor_of,
    token,
)
from penstock.console.messages.reading import advance
from penstock.console.messages.scan import criteria
from penstock.console.messages.search import PAGE_BYTES, Batch, Hit, Search, size_bytes
from penstock.record.batch import read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.record import Record, records
from penstock.types import TopicPartition

T = TypeVar("T")
LIMIT_BYTES = 1 << 20
contents = st.none() | st.binary(max_size=3) | st.sampled_from([b"ab", b"xabx", b"\x04ab", b"b"])
headers = st.lists(st.tuples(st.sampled_from(["a", "ab", "n"]), contents), max_size=2)
texts = st.sampled_from(["", "a", "b", "ab", "xabx"])


@dataclass(frozen=True)
class Log:
    """Batches of a partition, in order; the log may have lost its beginning."""

    batches: list[bytes]
    start: int
    end: int


@st.composite
def logs(draw: st.DrawFn) -> Log:
    batches, at = [], 0
    for _ in range(draw(st.integers(0, 4))):
        at += draw(st.integers(0, 2))  # a gap, as left by compaction
        found: list[Record] = []
        base = at
        for _ in range(draw(st.integers(1, 4))):
            at += draw(st.integers(0, 1))
            time_ms = draw(st.integers(0, 20))
            found.append(Record(at, time_ms, draw(contents), draw(contents), draw(headers)))
            at += 1
        codec = draw(st.sampled_from(Codec))
        control = draw(st.integers(0, 9)) == 0
        batches.append(bytes(build_batch(found, codec=codec, base_offset=base, control=control)))
    start = draw(st.integers(0, at))
    kept = [each for each in batches if read_header(each).last_offset >= start]
    return Log(kept, start, at)


@st.composite
def queries(draw: st.DrawFn) -> SearchQuery:
    """Most conditions are absent, so that the query finds something."""

    def rarely(given: st.SearchStrategy[T], default: T) -> T:
        return draw(given) if draw(st.integers(0, 3)) == 0 else default

    start, since = rarely(st.integers(0, 6), 0), rarely(st.integers(0, 5), 0)
    return SearchQuery(
        "t",
        text=rarely(texts, ""),
        place=draw(st.sampled_from(SEARCHED_PARTS)),
        key=rarely(texts, None),
        expression=rarely(st.just("odd"), ""),
        start=start,
        end=rarely(st.integers(start, 20), LARGEST),
        since_ms=since,
        until_ms=rarely(st.integers(since, 20), LARGEST),
        newest_first=draw(st.booleans()),
    )


def is_odd(_: TopicPartition, record: Record) -> bool:
    return record.offset % 2 == 1


class FakeFetcher:
    """Returns up to `piece` batches from an offset on, like a leader."""

    def __init__(self, logs: Mapping[int, Log], piece: int) -> None:
        self._logs, self._piece = logs, piece

    async def fetch(self, partition: int, offset: int) -> Fetched:
        log = self._logs[partition]
        if offset < log.start:
            return Fetched([], log.start, log.end)
        found: list[Batch] = []
        for data in log.batches:
            header = read_header(data)
            if header.last_offset >= offset and len(found) < self._piece:
                found.append(Batch(header, None if header.is_control else data))
        return Fetched(found, log.start, log.end)

    async def ahead(self, partition: int, offset: int) -> None:
        """No prefetching."""


def naive(query: SearchQuery, logs: Mapping[int, Log]) -> list[tuple[int, int]]:
    """Partition and offset of each matching record, by a filter over all records."""
    found = []
    for partition, log in logs.items():
        start, end = span(query, log)
        place, sign = (LARGEST, -1) if query.newest_first else (-1, 1)
        nearer = min if query.newest_first else max
        for data in log.batches[::sign]:
            header = read_header(data)
            if header.next_offset <= start or header.base_offset >= end:
                continue
            at_ms = header.max_timestamp if query.newest_first else header.base_timestamp
            place = nearer(place, at_ms)
            if not header.is_control:
                for each in list(records(data, header, LIMIT_BYTES))[::sign]:
                    if start <= each.offset < end and wants(query, each):
                        place = nearer(place, each.timestamp)
                        found.append((place * sign, partition, each.offset * sign))
    return [(partition, abs(offset)) for _, partition, offset in sorted(found)]


def wants(query: SearchQuery, record: Record) -> bool:
    fields = {"key": [record.key], "value": [record.value]}
    fields["headers"] = [part for k, v in record.headers for part in (k.encode(), v)]
    places = list(fields) if query.place == "any" else [query.place]
    text = query.text.encode()
    inside = any(each is not None and text in each for name in places for each in fields[name])
    return (
        (not text or inside)
        and (query.key is None or record.key == query.key.encode())
        and (not query.expression or record.offset % 2 == 1)
        and query.since_ms <= record.timestamp < query.until_ms
    )


def span(query: SearchQuery, log: Log) -> tuple[int, int]:
    start = min(max(query.start, log.start), log.end)
    return start, max(start, min(query.end, log.end))


def run(
    cursor: Cursor,
    logs: Mapping[int, Log],
    limit: int,
    piece: int,
    reads: int,
    window: int = 200,
    page_bytes: int = PAGE_BYTES,
) -> tuple[list[Hit], Cursor]:
    fits = is_odd if cursor.query.expression else None
    search = Search(cursor, criteria(cursor.query, fits), limit, page_bytes)
    left = iter(range(reads - 1))
    fetcher = FakeFetcher(logs, piece)
    asyncio.run(advance(search, fetcher, lambda: next(left, None) is not None, window))
    assert len(search.hits) <= limit
    return search.hits, cursor_of(token(search.cursor()), cursor.query.topic)


def ids(hits: Sequence[Hit]) -> Iterator[tuple[int, int]]:
    return ((each.partition, each.record.offset) for each in hits)


some_logs = st.lists(logs(), min_size=1, max_size=3).map(lambda found: dict(enumerate(found)))
steps = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=5
)


def log_of(*batches: list[tuple[int, int]]) -> Log:
    """Batches of records, given by offset and time."""
    built = [
        bytes(build_batch([Record(*each, None, b"v", []) for each in b], base_offset=b[0][0]))
        for b in batches
    ]
    return Log(built, 0, batches[-1][-1][0] + 1)


@given(some_logs, queries(), steps, st.integers(1, 9), st.sampled_from([1, 5, PAGE_BYTES]))
@example(
    {0: log_of([(0, 0), (1, 1), (2, 0)]), 1: log_of([(0, 1), (1, 0)], [(4, 0), (5, 0)])},
    SearchQuery(topic="t", expression="odd", newest_first=False),
    [(1, 1, 1)],
    1,
    1,
).via("a page ends in a batch whose first record is the newest")
def test_a_search_finds_what_a_filter_finds_in_the_same_order(
    logs: dict[int, Log],
    query: SearchQuery,
    steps: list[tuple[int, int, int]],
    window: int,
    page_bytes: int,
) -> None:
    cursor = begun(query, {number: span(query, log) for number, log in logs.items()})
    found: list[tuple[int, int]] = []
    for turn in range(1000):
        limit, piece, reads = steps[turn % len(steps)]
        hits, cursor = run(cursor, logs, limit, piece, reads, window, page_bytes)
        assert sum(size_bytes(each.record) for each in hits[:-1]) < page_bytes
        found += ids(hits)
        if not hits and cursor.is_done:
            break
    assert found == naive(query, logs)
    assert (cursor.matches, cursor.scanned) == (len(found), cursor.total)


@given(some_logs, queries(), st.integers(0, 3))
def test_counting_from_any_page_is_exact(
    logs: dict[int, Log], query: SearchQuery, page: int
) -> None:
    cursor = begun(query, {number: span(query, log) for number, log in logs.items()})
    if page:
        _, cursor = run(cursor, logs, page, 1, 1000)
    hits, cursor = run(cursor, logs, 0, 1, 1000)
    assert not hits
    assert cursor.is_done
    assert cursor.matches == len(naive(query, logs))
