"""A simple consumer without a group: reads partitions from offsets to ends, or forever."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from penstock.client.cluster import Client
from penstock.client.errors import RETRIABLE, BrokerRefused, RequestTimedOut, check
from penstock.client.isolation import visible
from penstock.client.listing import IsolationLevel, by_topic
from penstock.client.route import ToBroker
from penstock.errors import ErrorCode
from penstock.record.batch import CorruptBatch
from penstock.record.record import Record
from penstock.types import BrokerId, Buffer, Offset, TopicPartition, Uuid
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
"""Above any broker's limit; protects against a broken broker."""

RETRY_LIMIT_MS = 1_000
"""How much longer than its `wait_ms` a poll may take while a leader is missing."""

RETRY_ON = RETRIABLE - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
"""Excludes missing topics: waiting for one would look like waiting for records."""


@dataclass(frozen=True, slots=True)
class ConsumedRecord:
    """A record and its partition."""

    partition: TopicPartition
    record: Record
    leader_epoch: int = field(default=-1, kw_only=True, compare=False)
    """Epoch of the leader that wrote it; -1: unknown."""


class PositionOutOfRange(BrokerRefused):
    """A partition has no record at the position any more, or not yet."""

    def __init__(self, partition: TopicPartition, position: Offset) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"fetch of {partition} from {position}")
        self.partition = partition


@dataclass(frozen=True, slots=True)
class _Fetch:
    """A fetch in flight, and the positions that it requested."""

    future: asyncio.Future[FetchResponse]
    positions: Mapping[TopicPartition, Offset]
    deadline_s: float


class SimpleConsumer:
    """`async with SimpleConsumer(client, {partition: offset}) as consumer: await consumer.poll()`.

    Keeps one fetch in flight per leader; a poll returns the first response. Records of a partition
    come in offset order. Only one task may poll at a time. `positions` may be changed between
    polls: records fetched from another position are dropped.
    """

    def __init__(
        self,
        client: Client,
        positions: Mapping[TopicPartition, Offset],
        *,
        ends: Mapping[TopicPartition, Offset] | None = None,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        max_wait_ms: int = 500,
        partition_bytes: int = PARTITION_BYTES,
    ) -> None:
        self.positions = dict(positions)
        """The next offset to read, by partition."""
        self.paused: set[TopicPartition] = set()
        """Partitions that are not read at present."""
        self.ids: dict[str, Uuid] = {}
        """Ids of the topics that the positions belong to, if that matters: the positions do not
        apply to a topic created again since.
        """
        self._client, self._isolation, self._max_wait_ms = client, isolation, max_wait_ms
        self._ends, self._partition_bytes = ends, partition_bytes
        self._in_flight: dict[BrokerId, _Fetch] = {}

    @property
    def unfinished(self) -> list[TopicPartition]:
        """Partitions to read whose end is not reached. Without `ends`, reading never finishes."""
        ends = self._ends
        return [
            each
            for each, position in self.positions.items()
            if each not in self.paused and (ends is None or position < ends[each])
        ]

    async def poll(self, wait_ms: int | None = None) -> list[ConsumedRecord]:
        """Records of the first response; empty if that broker had none within `max_wait_ms`.

        Returns an empty list at once if all ends are reached, and after `wait_ms` if given: then
        the fetches go on, for the next poll.
        """
        limit_ms = None if wait_ms is None else wait_ms + RETRY_LIMIT_MS
        try:
            return await self._client.retrying(
                lambda: self._next(wait_ms), retry_on=RETRY_ON, timeout_ms=limit_ms
            )
        except BaseException:
            self.close()
            raise

    async def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        while self.unfinished:
            for each in await self.poll():
                yield each

    def close(self) -> None:
        for fetch in self._in_flight.values():
            fetch.future.cancel()
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

    async def _next(self, wait_ms: int | None) -> list[ConsumedRecord]:
        if not self.unfinished:
            return []
        await self._fetch_from_idle_leaders()
        now_s = asyncio.get_running_loop().time()
        limit_s = max(0.0, min(each.deadline_s for each in self._in_flight.values()) - now_s)
        wait_s = limit_s if wait_ms is None else min(limit_s, wait_ms / 1000)
        done, _ = await asyncio.wait(
            [each.future for each in self._in_flight.values()],
            timeout=wait_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not done and wait_s < limit_s:
            return []
        if not done:
            self.close()
            raise RequestTimedOut("no broker answered a fetch in time")
        leader = next(each for each, fetch in self._in_flight.items() if fetch.future in done)
        fetch = self._in_flight.pop(leader)
        return await self._taken(fetch.future.result(), fetch.positions)

    async def _fetch_from_idle_leaders(self) -> None:
        leaders = await self._client.by_leader(self.unfinished)
        for leader, partitions in leaders.items():
            if leader not in self._in_flight:
                connection = await self._client.connection(ToBroker(leader))
                request = await self._request(partitions)
                wait_ms = self._max_wait_ms + self._client.request_timeout_ms
                self._in_flight[leader] = _Fetch(
                    connection.send(request, FetchResponse),
                    {each: self.positions[each] for each in partitions},
                    asyncio.get_running_loop().time() + wait_ms / 1000,
                )

    async def _request(self, partitions: list[TopicPartition]) -> FetchRequest:
        topics = []
        for name, requested in by_topic(partitions).items():
            topic = await self._client.topic(name)
            if self.ids.get(name, topic.id) != topic.id:
                about = f"{name}, which was deleted and created again"
                raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about)
            fetches = [
                FetchPartition(
                    partition=each.partition,
                    current_leader_epoch=topic.partitions[each.partition].leader_epoch,
                    fetch_offset=self.positions[each],
                    partition_max_bytes=self._partition_bytes,
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

    async def _taken(
        self, response: FetchResponse, requested: Mapping[TopicPartition, Offset]
    ) -> list[ConsumedRecord]:
        """All records of a response; if it raises, no position has moved."""
        check(response.error_code, "fetch")
        names = {(await self._client.topic(name)).id: name for name in by_topic(self.positions)}
        found: list[ConsumedRecord] = []
        moved: dict[TopicPartition, Offset] = {}
        for topic in response.responses:
            for each in topic.partitions:
                name = topic.topic or names.get(topic.topic_id, "")
                topic_partition = TopicPartition(name, each.partition_index)
                if topic_partition not in requested:  # the topic was recreated meanwhile
                    check(each.error_code, f"fetch of {topic_partition}")
                    continue
                position = requested[topic_partition]
                if (
                    self.positions.get(topic_partition) != position
                    or topic_partition in self.paused
                ):
                    continue
                if each.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise PositionOutOfRange(topic_partition, position)
                check(each.error_code, f"fetch of {topic_partition} from {position}")
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
                ConsumedRecord(topic_partition, record, leader_epoch=header.leader_epoch)
                for record in records
                # A fetch returns whole batches, which may extend past both ends of the range.
                if record.offset >= position and (end is None or record.offset < end)
            ]
            position = max(position, header.next_offset)
        return found, position
