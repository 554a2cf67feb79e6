"""Reads and searches the records of a cluster for the console, at most two searches at a time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from penstock.client.cluster import Client
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.clock import Clock
from penstock.console.mask import Masks
from penstock.console.messages.decoding import Decoder
from penstock.console.messages.fetching import TopicFetcher
from penstock.console.messages.query import LARGEST, Cursor, SearchQuery, begun
from penstock.console.messages.reading import advance
from penstock.console.messages.scan import Criteria, criteria
from penstock.console.messages.search import Hit, Search
from penstock.counted import counted
from penstock.errors import ConfigError
from penstock.record.record import Record
from penstock.record_view.filter import RecordFilter, record_filter
from penstock.record_view.registry import SchemaRegistry
from penstock.types import TopicPartition

AT_ONCE: Final = 2
"""The most concurrent searches of a console; further ones queue."""


class NoSuchTopic(ConfigError):
    """There is no such topic, or partition."""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """What a search found within its time; `cursor` is where it continues."""

    hits: list[Hit]
    cursor: Cursor
    left_ms: int
    """The estimated time for the rest."""
    warning: str
    """How many records the expression did not fit, and why the first did not; empty if none."""


class Messages:
    """The records of a cluster. With `sees_all` False, masked fields are hidden."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        registry: SchemaRegistry | None = None,
        masks: Masks | None = None,
    ) -> None:
        # A separate client: large responses must not delay those that pages wait for.
        self.client, self._clock = client.twin(), clock
        self.decode = Decoder(registry, clock)
        self._masks = masks or Masks()
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def begin(self, query: SearchQuery) -> Cursor:
        """The cursor of a new search; its offset range is fixed now."""
        tps = await self.partitions(query.topic, query.partitions)
        isolation = IsolationLevel(int(query.committed))
        starts = await list_offsets(self.client, dict.fromkeys(tps, EARLIEST))
        ends = await list_offsets(self.client, dict.fromkeys(tps, LATEST), isolation=isolation)
        low = {tp: max(query.start, each.offset) for tp, each in starts.items()}
        high = {tp: min(query.end, each.offset) for tp, each in ends.items()}
        if query.since_ms > 0:
            since = await list_offsets(self.client, dict.fromkeys(tps, query.since_ms))
            low = {
                tp: max(low[tp], at.offset) if at.offset >= 0 else high[tp]
                for tp, at in since.items()
            }
        if query.until_ms < LARGEST:
            until = await list_offsets(self.client, dict.fromkeys(tps, query.until_ms))
            high |= {tp: min(high[tp], at.offset) for tp, at in until.items() if at.offset >= 0}
        return begun(query, {tp.partition: (min(low[tp], high[tp]), high[tp]) for tp in tps})

    async def partitions(self, topic: str, chosen: tuple[int, ...] = ()) -> list[TopicPartition]:
        found = await self.client.existing_topics([topic])
        if not found:
            raise NoSuchTopic(f"there is no topic {topic}")
        for each in chosen:
            if each not in found[0].partitions:
                raise NoSuchTopic(f"there is no partition {each} of {topic}")
        return [TopicPartition(topic, each) for each in sorted(chosen or found[0].partitions)]

    async def search(
        self, cursor: Cursor, limit: int, within_ms: int, *, sees_all: bool
    ) -> SearchPage:
        """Search for up to `limit` records, and stop soon after `within_ms`."""
        query = cursor.query
        chosen = self._filter(query)
        search = Search(cursor, self._criteria(query, chosen, sees_all=sees_all), limit)
        async with self._turns:
            began_ms = self._clock.monotonic_ms()
            fetcher = TopicFetcher(self.client, query.topic, committed=query.committed)
            try:
                await advance(search, fetcher, self._until(began_ms + within_ms))
            finally:
                fetcher.close()
        reached = search.cursor()
        passed, left = reached.scanned - cursor.scanned, reached.total - reached.scanned
        took_ms = self._clock.monotonic_ms() - began_ms
        hide = self.hiding(query.topic, sees_all=sees_all)
        hits = [Hit(each.partition, hide(each.record), each.header) for each in search.hits]
        left_ms = took_ms * left // passed if passed else 0
        return SearchPage(hits, reached, left_ms, "" if chosen is None else unfit(chosen))

    def _until(self, deadline_ms: int) -> Callable[[], bool]:
        return lambda: self._clock.monotonic_ms() < deadline_ms

    def criteria(self, query: SearchQuery, *, sees_all: bool) -> Criteria:
        return self._criteria(query, self._filter(query), sees_all=sees_all)

    def _filter(self, query: SearchQuery) -> RecordFilter | None:
        if not query.expression:
            return None
        return record_filter(query.expression, self.decode, self.decode, "expression")

    def _criteria(
        self, query: SearchQuery, chosen: RecordFilter | None, *, sees_all: bool
    ) -> Criteria:
        found = criteria(query, None if chosen is None else chosen.matches)
        masks = self._masks.of(query.topic)
        if sees_all or not masks:
            return found

        def matches(partition: int, record: Record) -> bool:
            return found.matches(partition, masks.applied(record, self.decode))

        return Criteria(found.needle, matches, decodes=True)

    def hiding(self, topic: str, *, sees_all: bool) -> Callable[[Record], Record]:
        """The function that masks a record for this user."""
        masks = self._masks.of(topic)
        if sees_all or not masks:
            return lambda record: record
        return lambda record: masks.applied(record, self.decode)

    async def one(self, topic: str, partition: int, offset: int, *, sees_all: bool) -> Hit | None:
        query = SearchQuery(topic, (partition,), start=offset, end=offset + 1, newest_first=False)
        page = await self.search(await self.begin(query), 1, 30_000, sees_all=sees_all)
        return page.hits[0] if page.hits else None


def unfit(chosen: RecordFilter) -> str:
    if not chosen.failures:
        return ""
    return f"The expression failed on {counted(chosen.failures, 'record')}: {chosen.first_failure}."
