"""Reads records again, by their offsets.

Due records may lie far apart. A fetch returns whole batches, at least one. So the next fetch begins
at the first offset that no batch has covered, and asks for more bytes the nearer the offsets lie.
All partitions of a leader share each fetch.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from penstock.client.cluster import Client
from penstock.client.errors import RETRIABLE, BrokerRefused, RequestTimedOut, check
from penstock.client.isolation import visible_batches
from penstock.client.listing import EARLIEST, IsolationLevel, by_topic
from penstock.client.offsets import list_offsets
from penstock.client.route import ToBroker
from penstock.errors import ErrorCode, KafkaError
from penstock.record.record import Record, records
from penstock.retry.topics import TopicWaits
from penstock.types import BrokerId, Buffer, Offset, TopicPartition, Uuid
from penstock.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

LEAST_BYTES: Final = 32 * 1024
MOST_BYTES: Final = 1024 * 1024
FETCH_BYTES: Final = 16 * 1024 * 1024
DECOMPRESSED_BYTES: Final = 1 << 30
NEAR: Final = 256
EMPTY_MS: Final = 100
EMPTY_TIMES: Final = 50
"""Empty fetches before giving up: a new leader may not yet show what others committed."""
NO_TOPIC: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
RETRY_ON: Final = RETRIABLE - NO_TOPIC
"""Does not include missing topics: a deleted topic must not hold up others."""


class TopicMadeAnew(KafkaError):
    """A topic's id differs from that of its known progress: a new service starts from nothing."""


@dataclass(slots=True)
class Reread:
    """The wanted records of one partition, and those found."""

    partition: TopicPartition
    topic_id: Uuid
    wanted: list[int]
    """Offsets not read yet, highest first. At the end: those beyond the limit."""
    limit_bytes: int
    leader_epoch: int | None = None
    """Epoch of the last leader whose log is known to have them; None: any leader will do."""
    found: dict[int, Record] = field(default_factory=dict)
    """Records by offset; those that retention removed are missing."""
    size_bytes: int = 0
    fetch_bytes: int = LEAST_BYTES
    empty: int = 0
    is_out_of_range: bool = False
    has_new_leader: bool = False
    """A newer leader, not checked yet, may have lost the records and have others there."""

    def __post_init__(self) -> None:
        self.wanted = sorted(self.wanted, reverse=True)

    @property
    def is_done(self) -> bool:
        return not self.wanted or self.size_bytes >= self.limit_bytes

    def note_leader(self, epoch: int) -> None:
        self.has_new_leader = self.leader_epoch is not None and epoch > self.leader_epoch

    def take(self, fetched: PartitionData) -> None:
        """Raises errors, except for an offset that was deleted."""
        about = f"fetch of {self.partition} from {self.wanted[-1]}"
        if fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.is_out_of_range = True
            return
        check(fetched.error_code, about)
        assert isinstance(fetched.records, Buffer | None), "a response has its records in memory"
        before = self.wanted[-1]
        for header, batch in visible_batches(
            fetched.records or b"", fetched.aborted_transactions, DECOMPRESSED_BYTES
        ):
            if batch is not None and self.wanted and self.wanted[-1] <= header.last_offset:
                self._read(records(batch, header, DECOMPRESSED_BYTES))
            self._covered(header.next_offset)
            if self.is_done:
                return
        if self.wanted[-1] == before and fetched.records:
            # The batch was cut: only the first partition of a response is sure to have a whole one.
            self.fetch_bytes = min(FETCH_BYTES, self.fetch_bytes * 4)
            return
        if self.wanted[-1] == before:
            self.empty += 1
            if self.empty > EMPTY_TIMES:
                raise RequestTimedOut(f"{about}: the leader has no such record yet")
        is_near = bool(fetched.records) and self.wanted[-1] - before < NEAR * 16
        self.fetch_bytes = min(MOST_BYTES, self.fetch_bytes * 4) if is_near else LEAST_BYTES

    def begin_at(self, log_start: Offset) -> None:
        """The log begins here: earlier records were deleted."""
        if log_start <= self.wanted[-1]:
            about = f"fetch of {self.partition} from {self.wanted[-1]}"
            raise BrokerRefused(ErrorCode.OFFSET_OUT_OF_RANGE, about)
        self.is_out_of_range = False
        self._covered(log_start)

    def _read(self, batch: Iterable[Record]) -> None:
        wanted = self.wanted
        for record in batch:
            while wanted and wanted[-1] < record.offset:
                wanted.pop()
            if not wanted:
                return
            if record.offset == wanted[-1]:
                wanted.pop()
                self.found[record.offset] = record
                self.size_bytes += _size_bytes(record)
                if self.is_done:
                    return

    def _covered(self, end: int) -> None:
        if self.size_bytes >= self.limit_bytes:
            return
        while self.wanted and self.wanted[-1] < end:
            self.wanted.pop()


def _size_bytes(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.value or b"") + len(record.key or b"") + headers


async def reread(client: Client, parts: Sequence[Reread]) -> None:
    """Fetch until each part is done."""
    while open_parts := {each.partition: each for each in parts if not each.is_done}:
        await client.retrying(partial(_round, client, open_parts), retry_on=RETRY_ON)
        for each in parts:
            if each.has_new_leader:
                code, about = ErrorCode.FENCED_LEADER_EPOCH, f"records of {each.partition}"
                raise TopicWaits(code, about, "it has a new leader")
        lost = [each for each in parts if each.is_out_of_range]
        if lost:
            begins = {each.partition: EARLIEST for each in lost}
            starts = await list_offsets(client, begins)
            for each in lost:
                each.begin_at(starts[each.partition].offset)


async def _round(client: Client, parts: dict[TopicPartition, Reread]) -> None:
    requests = {
        leader: await _request(client, [parts[each] for each in partitions])
        for leader, partitions in (await client.by_leader(parts)).items()
    }
    if any(each.has_new_leader for each in parts.values()):
        return
    sent = []
    for leader, request in requests.items():
        connection = await client.connection(ToBroker(leader))
        sent.append((leader, connection.send(request, FetchResponse)))
    for leader, future in sent:
        await _taken(client, leader, future, parts)


async def _taken(
    client: Client,
    leader: BrokerId,
    future: asyncio.Future[FetchResponse],
    parts: dict[TopicPartition, Reread],
) -> None:
    try:
        async with asyncio.timeout((EMPTY_MS + client.request_timeout_ms) / 1000):
            response = await future
    except TimeoutError:
        raise RequestTimedOut(f"broker {leader} did not answer a fetch in time") from None
    check(response.error_code, "fetch")
    names = {each.topic_id: each.partition.topic for each in parts.values()}
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id, "")
        for each in topic.partitions:
            part = parts.get(TopicPartition(name, each.partition_index))
            if part is not None and not part.is_done:
                part.take(each)


async def _request(client: Client, parts: Sequence[Reread]) -> FetchRequest:
    by_partition = {each.partition: each for each in parts}
    topics = []
    for name, requested in by_topic(by_partition).items():
        topic = await client.topic(name)
        if topic.id != by_partition[requested[0]].topic_id:
            raise TopicMadeAnew(f"topic {name} was created again")
        for each in requested:
            by_partition[each].note_leader(topic.partitions[each.partition].leader_epoch)
        fetches = [
            FetchPartition(
                partition=each.partition,
                current_leader_epoch=topic.partitions[each.partition].leader_epoch,
                fetch_offset=by_partition[each].wanted[-1],
                partition_max_bytes=by_partition[each].fetch_bytes,
            )
            for each in requested
        ]
        topics.append(FetchTopic(topic=name, topic_id=topic.id, partitions=fetches))
    return FetchRequest(
        max_wait_ms=EMPTY_MS,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        isolation_level=IsolationLevel.READ_COMMITTED,
        topics=topics,
    )


async def records_at(
    client: Client, partition: TopicPartition, offsets: Sequence[int]
) -> dict[int, Record]:
    """The records of one partition at these offsets; those that retention removed are missing."""
    topic = await client.retrying(partial(client.topic, partition.topic))
    part = Reread(partition, topic.id, list(offsets), DECOMPRESSED_BYTES)
    await reread(client, [part])
    return part.found
