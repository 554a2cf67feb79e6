"""Writes the records of many requests. Records that arrive for a topic during a write to it are
batched into the next write. A topic that cannot be written, as without a leader, does not block
others.

Bounded: if more than `MOST_BYTES` are waiting, a request is refused (429), and its client retries.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.client.cluster import Client
from penstock.client.errors import ALWAYS_RETRIABLE, RETRIABLE, BrokerRefused
from penstock.client.produce import Acks, IdempotentProducer, PlainProducer
from penstock.client.record_sender import ProducedRecord, ProducerRecord
from penstock.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 64 * 1024 * 1024
MOST_IDLE: Final = 16
"""How many idle producers are kept for reuse; creating one costs a request to a broker."""

Result: TypeAlias = ProducedRecord | BrokerRefused
Producer: TypeAlias = IdempotentProducer | PlainProducer
Lane: TypeAlias = tuple[Acks, str]
"""The records of one topic and acks level; a lane has one write in flight."""
_Waiting: TypeAlias = tuple[list[ProducerRecord], "asyncio.Future[list[Result]]"]


class TooMuchWaits(Exception):
    """Too many records wait: the brokers are slower than the clients."""


class RestSender:
    """`run` writes, with one task per lane that has records; requests call `send`."""

    def __init__(self, client: Client, *, most_bytes: int = MOST_BYTES) -> None:
        self._client, self._most_bytes = client, most_bytes
        self._makers: dict[Acks, Callable[[], Producer]] = {
            Acks.ALL: lambda: IdempotentProducer(client),
            Acks.LEADER: lambda: PlainProducer(client, acks=Acks.LEADER),
            Acks.NONE: lambda: PlainProducer(client, acks=Acks.NONE),
        }
        self._idle: dict[Acks, list[Producer]] = {acks: [] for acks in self._makers}
        """Idle producers; each is used by one task at a time."""
        self._queues: dict[Lane, list[_Waiting]] = {}
        self._new: asyncio.Queue[Lane] = asyncio.Queue()
        self._bytes = 0

    async def send(
        self, records: list[ProducerRecord], acks: Acks, *, create: bool = False
    ) -> list[Result]:
        """Write records of one topic, and return the result of each. Raises if the topic or
        partition does not exist; `create` lets the broker create the topic.
        """
        await self._check(records, create=create)
        size_bytes = sum(each.size_bytes for each in records)
        if self._bytes and self._bytes + size_bytes > self._most_bytes:
            raise TooMuchWaits
        self._bytes += size_bytes
        try:
            future: asyncio.Future[list[Result]] = asyncio.get_running_loop().create_future()
            lane = acks, records[0].topic
            if lane not in self._queues:
                self._queues[lane] = []
                self._new.put_nowait(lane)
            self._queues[lane].append((records, future))
            return await future
        finally:
            self._bytes -= size_bytes

    async def _check(self, records: list[ProducerRecord], *, create: bool) -> None:
        """Check partitions before records are batched with those of others: one bad partition would
        fail the whole write.
        """
        # The response that triggers a creation is UNKNOWN_TOPIC_OR_PARTITION, so retry it.
        topic = await self._client.retrying(
            lambda: self._client.topic(records[0].topic, create=create),
            retry_on=RETRIABLE if create else ALWAYS_RETRIABLE,
        )
        for each in records:
            if each.partition is not None and each.partition not in topic.partitions:
                about = f"{each.topic}-{each.partition}"
                raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(self._empty(await self._new.get()))

    async def _empty(self, lane: Lane) -> None:
        idle = self._idle[lane[0]]
        producer = idle.pop() if idle else self._makers[lane[0]]()
        while waiting := self._queues[lane]:
            self._queues[lane] = []
            await self._write(producer, waiting)
        del self._queues[lane]
        if len(idle) < MOST_IDLE:
            idle.append(producer)

    async def _write(self, producer: Producer, waiting: list[_Waiting]) -> None:
        records = [each for batch, _ in waiting for each in batch]
        try:
            results = await producer.deliver(records, past_refused=True)
        except Exception as error:
            if not isinstance(error, KafkaError):  # an unexpected error must not end the service
                logger.exception("records were not written")
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        at = 0
        for batch, future in waiting:
            mine = [each for each in results[at : at + len(batch)] if each is not None]
            at += len(batch)
            if not future.done():
                future.set_result(mine)
