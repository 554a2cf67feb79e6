"""The producer for asyncio: `metadata = await producer.send("orders", order)`.

`enqueue` returns as soon as the record is queued, for many in flight:

    sent = [await producer.enqueue("orders", each) for each in orders]
    for each in sent:
        await each
"""

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Final, Generic, Self

from penstock.sdk.delivery import Delivery
from penstock.sdk.errors import QueueFull
from penstock.sdk.producer import Producer
from penstock.sdk.record import Header, K, Outgoing, RecordMetadata, V

ROOM_S: Final = 0.005


class AsyncProducer(Generic[K, V]):
    """Uses a `Producer` from an event loop without blocking it; its block closes the producer."""

    def __init__(self, producer: Producer[K, V], *, max_block_s: float = 60.0) -> None:
        self.producer = producer
        self._max_block_s = max_block_s

    async def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Returns when a broker has the record; raises `SendFailed`."""
        delivery = await self.enqueue(
            topic,
            value,
            key=key,
            headers=headers,
            partition=partition,
            timestamp_ms=timestamp_ms,
        )
        return await delivery

    async def enqueue(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Returns when the record is in the queue; await the delivery, or let `flush` raise."""
        offer = self.producer.offer
        delivery, again = offer(topic, value, key, headers, partition, timestamp_ms)
        if again is not None:
            loop = asyncio.get_running_loop()
            deadline_s = loop.time() + self._max_block_s
            while not again():
                if loop.time() >= deadline_s:
                    raise QueueFull(topic, round(self._max_block_s * 1000))
                await asyncio.sleep(ROOM_S)
        return delivery

    async def send_all(self, records: Iterable[Outgoing[K, V]]) -> list[RecordMetadata]:
        """A batch: all are queued before the first is awaited; raises the first failure."""
        sent = [await _queued(self, each) for each in records]
        for each in sent:
            each.observed = True
        return [await each for each in sent]

    async def flush(self) -> None:
        await asyncio.to_thread(self.producer.flush)

    async def close(self) -> None:
        await asyncio.to_thread(self.producer.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.producer.__exit__, kind, error, trace)


async def _queued(producer: AsyncProducer[K, V], record: Outgoing[K, V]) -> Delivery:
    return await producer.enqueue(
        record.topic,
        record.value,
        key=record.key,
        headers=record.headers,
        partition=record.partition,
        timestamp_ms=record.timestamp_ms,
    )
