"""The due records of a route, read again from their topic.

Records that cannot be read or written now wait, and hold up no other partition.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.clock import Clock
from penstock.config.delay_route import Route
from penstock.errors import ErrorCode
from penstock.retry.delivery import EntryDelivery, deliveries
from penstock.retry.partition import DelayPartition
from penstock.retry.positions import Reread, reread
from penstock.retry.store.index import DueKind, DueTimeIndex, Entry
from penstock.retry.topics import Topics, TopicWaits

BATCH: Final = 2000
"""Most records of one transaction, per partition."""
TRANSACTION_BYTES: Final = 16 << 20
LEAST_SHARE_BYTES: Final = 1 << 20
"""Least share of a transaction's bytes per partition; at least one record is always moved."""
MISSING_MS: Final = 1_000
"""How long a partition waits whose target is known to be missing."""
WITH_RECORD: Final = frozenset({DueKind.RECORD, DueKind.SCHEDULE, DueKind.DEAD})
READ_S: Final = 5.0
"""How long brokers may take to read; other routes may have to wait as long."""

log = logging.getLogger(__name__)


class PlannedDeliveries(NamedTuple):
    """The deliveries of a transaction for one partition."""

    owned: DelayPartition
    deliveries: list[EntryDelivery]


class DueRecords:
    """Plans the next transaction of a route."""

    def __init__(self, client: Client, index: DueTimeIndex, topics: Topics, clock: Clock) -> None:
        self._client, self._index, self._topics, self._clock = client, index, topics, clock

    async def planned(
        self, partitions: Sequence[DelayPartition], now_ms: int
    ) -> list[PlannedDeliveries]:
        due = [(owned, found) for owned in partitions if (found := await self._due(owned, now_ms))]
        share = max(LEAST_SHARE_BYTES, TRANSACTION_BYTES // max(1, len(due)))
        parts = [
            Reread(
                owned.partition,
                owned.key.topic_id,
                [each.offset for each in entries if each.kind in WITH_RECORD],
                share,
                owned.leader_epoch,
            )
            for owned, entries in due
        ]
        await self._reread(parts)
        planned = []
        for (owned, entries), part in zip(due, parts, strict=True):
            whole = _whole(entries, set(part.wanted))
            if len(whole) < len(entries):
                # The first entries may not be among the records that fit.
                owned.batch = fewer(len(entries))
            if whole:
                same = self._has_same_partitions(owned.route)
                waiting = await self._waiting(owned, whole)
                done = deliveries(owned, whole, part.found, waiting, now_ms, same=same)
                planned.append(PlannedDeliveries(owned, done))
        return planned

    async def _reread(self, parts: Sequence[Reread]) -> None:
        about = "reading records that are due"
        try:
            async with asyncio.timeout(READ_S):
                await reread(self._client, parts)
        except TimeoutError:
            raise TopicWaits(ErrorCode.REQUEST_TIMED_OUT, about, f"{READ_S:g} s") from None

    async def _due(self, owned: DelayPartition, now_ms: int) -> list[Entry]:
        """The first due entries, unless they cannot be read or written."""
        if (
            not owned.is_opened
            or owned.next_due_ms is None
            or owned.next_due_ms > now_ms
            or owned.held_until_ms > self._clock.monotonic_ms()
        ):
            return []
        found = await self._first_due(owned, now_ms, owned.batch or BATCH)
        done = [each.offset for each in found if owned.progress.is_done(each.offset)]
        if done:  # the store lost their removal
            await self._index.remove(owned.stored, done)
            gone = set(done)
            found = [each for each in found if each.offset not in gone]
        if not found:
            owned.next_due_ms = await self._index.next_due_ms(owned.stored)
            return []
        refused = await self._refusal(owned, found)
        if isinstance(refused, TopicWaits):
            if owned.held_until_ms == 0:
                log.warning("records of %s wait: %s", owned.partition, refused)
            owned.held_until_ms = self._clock.monotonic_ms() + MISSING_MS
            return []
        owned.held_until_ms = 0
        return found

    async def _refusal(self, owned: DelayPartition, due: Sequence[Entry]) -> BrokerRefused | None:
        """Why due records cannot be moved now."""
        route, own = owned.route, owned.partition.partition
        to = own if self._has_same_partitions(route) else None
        refused = self._topics.leaderless(route.topic, own) or await self._topics.refusal(route.to)
        if refused is None:
            refused = self._topics.leaderless(route.to, to)
        if refused is None and any(each.kind is DueKind.SCHEDULE for each in due):
            refused = await self._topics.refusal(route.topic)
        return refused

    async def _first_due(self, owned: DelayPartition, now_ms: int, limit: int) -> list[Entry]:
        """The first due entries that need not wait for unread records."""
        while True:
            found = await self._index.due(owned.stored, now_ms, limit)
            free = [each for each in found if owned.is_free(each)]
            if free or len(found) < limit:
                return free
            limit *= 2

    async def _waiting(self, owned: DelayPartition, due: Sequence[Entry]) -> set[int]:
        """The offsets to cancel that are not done yet."""
        origins = {each.origin for each in due if each.kind is DueKind.CANCEL}
        return {each for each in origins if await self._index.waits(owned.stored, each)}

    def _has_same_partitions(self, route: Route) -> bool:
        """Whether records can keep their partition numbers."""
        topic, target = self._topics.get(route.topic), self._topics.get(route.to)
        return (
            topic is not None
            and target is not None
            and len(topic.partitions) == len(target.partitions)
        )


def fewer(batch: int) -> int:
    """The batch size after a transaction that was too large."""
    return max(1, (batch or BATCH) // 4)


def more(batch: int) -> int:
    """The batch size after a success; it grows slowly, since a larger batch may fail again."""
    return min(BATCH, (batch or BATCH) * 5 // 4 + 1)


def _whole(due: Sequence[Entry], unread: set[int]) -> Sequence[Entry]:
    """The entries before the first whose record was not read, because order is kept."""
    if not unread:
        return due
    first = next(at for at, each in enumerate(due) if each.offset in unread)
    return due[:first]
