"""A simple consumer without a group: reads partitions from offsets to ends, or forever."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from penstock.client.cluster import Client
from penstock.client.errors import RETRIABLE, RequestTimedOut, check
from penstock.client.isolation import visible
from penstock.client.listing import IsolationLevel, by_topic
from penstock.client.route import ToBroker
from penstock.errors import ErrorCode
from penstock.record.batch import CorruptBatch
from penstock.record.record import Record
from penstock.types import BrokerId, Buffer, Offset, TopicPartition
from penstock.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

PARTITION_BYTES = 1024 * 1024
FETCH_BYTES = 50 * 1024 * 1024
DECOMPRESSED_BYTES = 1 << 30
"""Above any limit of a broker; protects against a broken one."""

RETRY_ON = RETRIABLE - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
"""A consumer that waits for a missing topic would look like one that waits for records."""


@dataclass(frozen=True, slots=True)
class ConsumedRecord:
    """A record and its partition."""

    partition: TopicPartition
    record: Record


class SimpleConsumer:
    """`async with SimpleConsumer(client, {partition: offset}) as consumer: await consumer.poll()`.

    Keeps one fetch in flight per leader; a poll returns the first response. Records of a partition
    come in offset order. Only one task may poll at a time.
    """

    def __init__(
        self,
        client: Client,
        positions: Mapping[TopicPartition, Offset],
        *,
        ends: Mapping[TopicPartition, Offset] | None = None,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        max_wait_ms: int = 500,
    ) -> None:
        self.positions = dict(positions)
        """The next offset to read, by partition."""
        self._client, self._isolation, self._max_wait_ms = client, isolation, max_wait_ms
        self._ends = ends
        self._in_flight: dict[BrokerId, asyncio.Future[FetchResponse]] = {}

    @property
    def unfinished(self) -> list[TopicPartition]:
        """Partitions whose end is not reached; all of them if no ends were given."""
        ends = self._ends
        if ends is None:
            return list(self.positions)
        return [each for each, position in self.positions.items() if position < ends[each]]

    async def poll(self) -> list[ConsumedRecord]:
        """Records of the first response; empty if that broker had none within `max_wait_ms`.

        Returns an empty list at once if all ends are reached.
        """
        try:
            return await self._client.retrying(self._next, retry_on=RETRY_ON)
        except BaseException:
            self.close()
            raise

    async def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        while self.unfinished:
            for each in await self.poll():
                yield each

    def close(self) -> None:
        for future in self._in_flight.values():
            future.cancel()
        self._in_flight.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def _next(self) -> list[ConsumedRecord]:
        if not self.unfinished:
            return []
        await self._fetch_from_idle_leaders()
        done, _ = await asyncio.wait(
            self._in_flight.values(),
            timeout=(self._max_wait_ms + self._client.request_timeout_ms) / 1000,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not done:
            self.close()
            raise RequestTimedOut("no broker answered a fetch in time")
        leader = next(each for each, future in self._in_flight.items() if future in done)
        return await self._taken(self._in_flight.pop(leader).result())

    async def _fetch_from_idle_leaders(self) -> None:
        leaders = await self._client.by_leader(self.unfinished)
        for leader, partitions in leaders.items():
            if leader not in self._in_flight:
                connection = await self._client.connection(ToBroker(leader))
                request = await self._request(partitions)
                self._in_flight[leader] = connection.send(request, FetchResponse)

    async def _request(self, partitions: list[TopicPartition]) -> FetchRequest:
        topics = []
        for name, requested in by_topic(partitions).items():
            topic = await self._client.topic(name)
            fetches = [
                FetchPartition(
                    partition=each.partition,
                    current_leader_epoch=topic.partitions[each.partition].leader_epoch,
                    fetch_offset=self.positions[each],
                    partition_max_bytes=PARTITION_BYTES,
                )
                for each in requested
            ]
            topics.append(FetchTopic(topic=name, topic_id=topic.id, partitions=fetches))
        return FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=self._isolation,
            topics=topics,
        )

    async def _taken(self, response: FetchResponse) -> list[ConsumedRecord]:
        """All records of a response, or an error: then no position moves."""
        check(response.error_code, "fetch")
        names = {(await self._client.topic(name)).id: name for name in by_topic(self.positions)}
        found: list[ConsumedRecord] = []
        moved: dict[TopicPartition, Offset] = {}
        for topic in response.responses:
            for each in topic.partitions:
                name = topic.topic or names.get(topic.topic_id, "")
                topic_partition = TopicPartition(name, each.partition_index)
                check(
                    each.error_code,
                    f"fetch of {topic_partition} from {self.positions.get(topic_partition)}",
                )
                if topic_partition in self.positions:  # false if the topic was recreated meanwhile
                    try:
                        records, moved[topic_partition] = self._read(topic_partition, each)
                    except CorruptBatch as error:
                        raise CorruptBatch(f"{topic_partition}: {error}") from None
                    found += records
        self.positions |= moved
        return found

    def _read(
        self, topic_partition: TopicPartition, fetched: PartitionData
    ) -> tuple[list[ConsumedRecord], Offset]:
        """The records to return, and the next position."""
        assert isinstance(fetched.records, Buffer | None), (
            "a decoded response has its records in memory"
        )
        committed = self._isolation is IsolationLevel.READ_COMMITTED
        aborted = fetched.aborted_transactions if committed else ()
        position = self.positions[topic_partition]
        end = None if self._ends is None else self._ends[topic_partition]
        found = []
        for header, records in visible(fetched.records or b"", aborted, DECOMPRESSED_BYTES):
            found += [
                ConsumedRecord(topic_partition, record)
                for record in records
                # A fetch returns whole batches, which may extend past both ends of the range.
                if record.offset >= position and (end is None or record.offset < end)
            ]
            position = max(position, header.next_offset)
        return found, position
