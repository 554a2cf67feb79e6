"""Cancels records that wait.

A cancellation is ordered by a record in the same partition, whose header `penstock-cancel` has the
offset to cancel. The service carries it out in a transaction with its progress, so either the
cancellation wins or the delivery, and the state topic says which.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from penstock.client.cluster import Client
from penstock.client.consume import SimpleConsumer
from penstock.client.listing import EARLIEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.client.produce import IdempotentProducer, ProducerRecord
from penstock.config.delay_route import Route
from penstock.retry.pending import Pending, find_pending
from penstock.retry.policy import CANCEL
from penstock.retry.progress import CHUNK, Bitmaps, StateKey, decode_floor
from penstock.retry.selection import Selection
from penstock.retry.state_topic import STATE_TOPIC, state_key, state_partition
from penstock.retry.store.index import IndexKey
from penstock.types import TopicPartition

POLL_MS = 200
ROUNDS = 3
"""A schedule that fires while it is cancelled continues at another offset: look for it again."""


class CancelOutcome(Enum):
    """Whether the cancellation or the delivery was first."""

    CANCELLED = "cancelled"
    DELIVERED = "delivered"
    """Too late."""
    ORDERED = "ordered"
    """The service has not read the cancellation yet; it will before it delivers."""


@dataclass(frozen=True, slots=True)
class CancelOrder:
    """A cancellation that was written to the log."""

    key: IndexKey
    offset: int
    """Offset of the record to cancel."""
    ordered_at: int
    """Offset of the cancellation itself."""


class CancelWatch:
    """Finds outcomes of cancellations in the state topic's records; feed these in order. No I/O."""

    def __init__(self, orders: Sequence[CancelOrder]) -> None:
        self._open = set(orders)
        self.outcomes: dict[CancelOrder, CancelOutcome] = {}
        self._seen: dict[tuple[IndexKey, int], Bitmaps] = {}
        self._floors: dict[IndexKey, int] = {}

    @property
    def is_done(self) -> bool:
        return not self._open

    def feed(self, found: StateKey, value: bytes | None) -> None:
        partition = IndexKey(found.topic_id, found.partition)
        if found.chunk is None:
            self._floors[partition] = decode_floor(value)
        elif value is not None:
            # A deleted chunk has no bits: keep those seen before.
            old, new = self._bits(partition, found.chunk), Bitmaps.decode(value)
            merged = Bitmaps(old.delivered | new.delivered, old.cancelled | new.cancelled)
            self._seen[partition, found.chunk] = merged
        for each in [each for each in self._open if each.key == partition]:
            outcome = self._outcome(each)
            if outcome is not None:
                self.outcomes[each] = outcome
                self._open.remove(each)

    def _outcome(self, order: CancelOrder) -> CancelOutcome | None:
        bits, bit = self._bits(order.key, order.offset // CHUNK), 1 << order.offset % CHUNK
        if bits.cancelled & bit:
            return CancelOutcome.CANCELLED
        if bits.delivered & bit:
            return CancelOutcome.DELIVERED
        # The transaction that cancels also marks the cancellation itself as done: if only that mark
        # is there, it came too late.
        own = self._bits(order.key, order.ordered_at // CHUNK).done >> order.ordered_at % CHUNK & 1
        is_read = own or self._floors.get(order.key, 0) > order.ordered_at
        return CancelOutcome.DELIVERED if is_read else None

    def _bits(self, key: IndexKey, chunk: int) -> Bitmaps:
        return self._seen.get((key, chunk), Bitmaps())


async def cancel(
    client: Client, route: Route, selection: Selection, now_ms: int, wait_s: float
) -> list[tuple[Pending, CancelOutcome]]:
    """Cancel the selected records that wait; returns each outcome, as far as known in time."""
    pending = await find_pending(client, route, selection, now_ms)
    results = await _ordered(client, pending.keys, pending.found, wait_s)
    for _ in range(ROUNDS):
        fired = {each.key for each, outcome in results if _has_fired(each, outcome)}
        if not fired:
            break
        results = [each for each in results if not _has_fired(*each)]
        by_key = Selection(matches=lambda _, record, keys=fired: record.key in keys)  # type: ignore[misc]
        pending = await find_pending(client, route, by_key, now_ms)
        next_ones = [each for each in pending.found if each.schedule is not None]
        results += await _ordered(client, pending.keys, next_ones, wait_s)
    return sorted(results, key=lambda each: each[0])


def _has_fired(pending: Pending, outcome: CancelOutcome) -> bool:
    return pending.schedule is not None and outcome is CancelOutcome.DELIVERED


async def _ordered(
    client: Client,
    keys: Mapping[TopicPartition, IndexKey],
    pending: Sequence[Pending],
    wait_s: float,
) -> list[tuple[Pending, CancelOutcome]]:
    """Write the cancellations, and wait for their outcomes."""
    if not pending:
        return []
    written = await IdempotentProducer(client).send(
        ProducerRecord(
            each.partition.topic,
            None,
            headers=[(CANCEL, b"%d" % each.offset)],
            partition=each.partition.partition,
        )
        for each in pending
    )
    orders = [
        CancelOrder(keys[each.partition], each.offset, at.offset)
        for each, at in zip(pending, written, strict=True)
    ]
    watch = CancelWatch(orders)
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await _watch(client, watch, {state_partition(each.key) for each in orders})
    return [
        (each, watch.outcomes.get(order, CancelOutcome.ORDERED))
        for each, order in zip(pending, orders, strict=True)
    ]


async def _watch(client: Client, watch: CancelWatch, state_partitions: set[int]) -> None:
    """Follow the state topic from its beginning until all cancellations have an outcome."""
    while not await client.existing_topics([STATE_TOPIC]):
        await asyncio.sleep(POLL_MS / 1000)  # no service has run yet
    partitions = [TopicPartition(STATE_TOPIC, each) for each in state_partitions]
    starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    async with SimpleConsumer(
        client,
        {each: found.offset for each, found in starts.items()},
        isolation=IsolationLevel.READ_COMMITTED,
        max_wait_ms=POLL_MS,
    ) as consumer:
        while not watch.is_done:
            for each in await consumer.poll():
                found = state_key(each.record.key)
                if found is not None:
                    watch.feed(found, each.record.value)
