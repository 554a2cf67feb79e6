"""Writes the records of many requests: what arrives for a topic while a write to it is on its way
goes with the next. A topic that cannot be written, as without a leader, holds up no other.

Bounded: beyond `MOST_BYTES` that wait, a request is refused (429) and its client tries again.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.client.cluster import Client
from penstock.client.errors import ALWAYS_RETRIABLE, RETRIABLE, BrokerRefused
from penstock.client.produce import Acks, IdempotentProducer, PlainProducer
from penstock.client.record_sender import ProducerRecord, RecordMetadata
from penstock.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 64 * 1024 * 1024
MOST_IDLE: Final = 16
"""Producers that are kept; another one costs a request."""

Result: TypeAlias = RecordMetadata | BrokerRefused
Producer: TypeAlias = IdempotentProducer | PlainProducer
Lane: TypeAlias = tuple[Acks, str]
"""The records of a topic that wait are written one batch after the other."""
_Waiting: TypeAlias = tuple[list[ProducerRecord], "asyncio.Future[list[Result]]"]


class TooMuchWaits(Exception):
    """The brokers take less than the clients send."""


class RestSender:
    """`run` sends, a task for each topic to which something is to be sent; requests call `send`."""

    def __init__(self, client: Client, *, most_bytes: int = MOST_BYTES) -> None:
        self._client, self._most_bytes = client, most_bytes
        self._makers: dict[Acks, Callable[[], Producer]] = {
            Acks.ALL: lambda: IdempotentProducer(client),
            Acks.LEADER: lambda: PlainProducer(client, acks=Acks.LEADER),
            Acks.NONE: lambda: PlainProducer(client, acks=Acks.NONE),
        }
        self._idle: dict[Acks, list[Producer]] = {acks: [] for acks in self._makers}
        """Each is for one task at a time."""
        self._queues: dict[Lane, list[_Waiting]] = {}
        self._new: asyncio.Queue[Lane] = asyncio.Queue()
        self._bytes = 0

    async def send(
        self, records: list[ProducerRecord], acks: Acks, *, create: bool = False
    ) -> list[Result]:
        """The result of each record, all of one topic. Raises for a topic or partition that is not
        there; `create` lets the broker create the topic.
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
        """Before they are mixed with those of others: one bad partition would fail all."""
        # The response that starts a creation says UNKNOWN_TOPIC_OR_PARTITION.
        topic = await self._client.retrying(
            lambda: self._client.topic(records[0].topic, create=create),
            retry_on=RETRIABLE if create else ALWAYS_RETRIABLE,
        )
        for each in records:
            if each.partition is not None and each.partition not in topic.partitions:
                about = f"{each.topic}-{each.partition}"
                raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about)

    async def run(self) -> None:
        """Until cancelled."""
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
            if not isinstance(error, KafkaError):  # a request must not end the service
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
