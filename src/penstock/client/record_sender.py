"""Sends records in batches to the leaders of their partitions, one batch in flight for each.

The caller provides the producer's identity: see `ProducerSession`.
"""

import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from penstock.client.cluster import Client
from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.client.metadata import NO_LEADER, TopicMetadata
from penstock.client.partitioner import StickyPartitioner, keyed_partition
from penstock.client.producer_session import Acks, ProducerSession
from penstock.client.refused_batch import TOO_LARGE, blame, is_records_fault
from penstock.client.route import ToBroker
from penstock.clock import Clock, SystemClock
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import SEQUENCES
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.record import Record
from penstock.types import BrokerId, Offset, TopicPartition
from penstock.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

BATCH_BYTES = 256 * 1024
STICKY_BYTES = 16 * 1024
"""Records without keys change partition after this many bytes: Kafka's batch.size (KIP-794)."""
REQUEST_BYTES = 4 * 1024 * 1024
RECORD_OVERHEAD_BYTES = 24
"""Upper bound for the lengths and deltas of a record; a header takes less than half of it."""
EXPLICIT_PRODUCE: Final = 11
"""The last version whose writes do not add their partitions to a transaction (KIP-890)."""


BeforeSend: TypeAlias = Callable[[Iterable[TopicPartition]], Awaitable[None]]
"""Called with the partitions of the next requests, before they are sent."""


async def _nothing_before(_partitions: Iterable[TopicPartition]) -> None:
    """The default, for producers without transactions."""


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A record to send; a partition or timestamp of None is chosen by the producer."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None
    timestamp: int | None = None

    @property
    def size_bytes(self) -> int:
        headers = (  # a name that is not UTF-8 has surrogates: see `Record`
            len(name.encode(errors="surrogateescape"))
            + len(value or b"")
            + RECORD_OVERHEAD_BYTES // 2
            for name, value in self.headers
        )
        return len(self.key or b"") + len(self.value or b"") + sum(headers) + RECORD_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class ProducedRecord:
    """Partition and offset of a written record."""

    partition: TopicPartition
    offset: Offset


@dataclass(slots=True)
class _Batch:
    """Records for one partition, each with its index in the caller's list.

    Once built, the bytes do not change: a retried batch must be the same batch.
    """

    records: list[tuple[int, ProducerRecord]] = field(default_factory=list)
    size_bytes: int = 0
    built: bytes = b""
    was_corrupt: bool = False


Queues: TypeAlias = dict[TopicPartition, deque[_Batch]]
"""Batches by partition; none of the queues is empty."""


@dataclass(slots=True)
class _Results:
    """Results by the record's index in the caller's list."""

    written: dict[int, ProducedRecord] = field(default_factory=dict)
    refused: dict[int, BrokerRefused] = field(default_factory=dict)

    def of(self, position: int) -> ProducedRecord | BrokerRefused | None:
        return self.written.get(position) or self.refused.get(position)


NO_RESPONSE: Final = PartitionProduceResponse(base_offset=-1)
"""Used with acks=0: counts as written, at an unknown offset."""


class RecordSender:
    """Only one task may send at a time."""

    def __init__(
        self,
        client: Client,
        *,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        create_topics: bool = False,
        batch_bytes: int = BATCH_BYTES,
        acks: Acks = Acks.ALL,
        clock: Clock | None = None,
    ) -> None:
        self._client, self._codec, self._level, self._acks = client, codec, level, acks
        self._create_topics, self._batch_bytes = create_topics, batch_bytes
        self._clock = clock or SystemClock()
        self._sticky: dict[str, StickyPartitioner] = {}
        self._limits: dict[str, int] = {}
        """Limits by topic, where brokers accept less than `batch_bytes` (`max.message.bytes`)."""

    async def deliver(
        self,
        records: Iterable[ProducerRecord],
        session: ProducerSession,
        *,
        past_refused: bool = False,
        before_send: BeforeSend = _nothing_before,
        retry_on: frozenset[ErrorCode] = RETRIABLE,
    ) -> list[ProducedRecord | BrokerRefused | None]:
        """The result of each record: written, rejected by a broker, or not sent (None).

        Records after the first rejected one are not sent, except those already written to other
        partitions by then; `past_refused` sends them too. If this raises, it is unknown which
        batches were written: the session must not be used again. If its sequence numbers were,
        the broker would take new records for duplicates.
        """
        sent = list(records)
        names = {each.topic for each in sent}
        topics = {name: await self._topic(name, retry_on) for name in names}
        queues = self._queues(sent, topics)
        results = _Results()
        while queues:
            await before_send(queues)
            await self._client.retrying(
                lambda: self._round(queues, results, session), retry_on=retry_on
            )
            if results.refused and not past_refused:
                _cut(queues, min(results.refused))
        return [results.of(position) for position in range(len(sent))]

    async def _topic(self, name: str, retry_on: frozenset[ErrorCode]) -> TopicMetadata:
        async def attempt() -> TopicMetadata:
            return await self._client.topic(name, create=self._create_topics)

        if self._create_topics:
            # The response that starts the creation says UNKNOWN_TOPIC_OR_PARTITION.
            return await self._client.retrying(attempt, retry_on=retry_on)
        return await self._client.retrying(attempt)

    def _queues(
        self, records: Sequence[ProducerRecord], topics: Mapping[str, TopicMetadata]
    ) -> Queues:
        """The records in batches, by partition."""
        queues: Queues = {}
        for position, record in enumerate(records):
            topic_partition = TopicPartition(
                record.topic, self._placed(record, topics[record.topic])
            )
            limit = self._limits.get(record.topic, self._batch_bytes)
            _add(queues.setdefault(topic_partition, deque()), (position, record), limit)
        for sticky in self._sticky.values():
            sticky.turn()
        return queues

    def _placed(self, record: ProducerRecord, topic: TopicMetadata) -> int:
        if record.partition is not None:
            if record.partition not in topic.partitions:
                about = f"{record.topic}-{record.partition}"
                raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about)
            return record.partition
        if record.key is not None:
            return keyed_partition(record.key, len(topic.partitions))
        led = [each.index for each in topic.partitions.values() if each.leader != NO_LEADER]
        sticky = self._sticky.get(topic.name)
        if sticky is None:
            first = random.randrange(len(topic.partitions))  # noqa: S311  only spreads load
            sticky = self._sticky[topic.name] = StickyPartitioner(STICKY_BYTES, first)
        return sticky.next(led or list(topic.partitions), record.size_bytes)

    async def _round(self, queues: Queues, results: _Results, session: ProducerSession) -> None:
        """Send the first batch of each partition; written or rejected ones leave their queue."""
        errors: list[KafkaError] = []
        for leader, partitions in (await self._client.by_leader(queues)).items():
            try:
                results_by_partition = await self._produced(leader, partitions, queues, session)
            except KafkaError as error:
                errors.append(error)
                continue
            for topic_partition, response in results_by_partition.items():
                # The broker has this retried batch, but no longer knows its offset.
                if response.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                    self._written(topic_partition, queues, results, session, None)
                elif response.error_code == ErrorCode.NONE:
                    self._written(topic_partition, queues, results, session, response.base_offset)
                elif is_records_fault(
                    response.error_code, was_corrupt=queues[topic_partition][0].was_corrupt
                ):
                    self._refused(topic_partition, queues, results, response)
                else:
                    if response.error_code == ErrorCode.CORRUPT_MESSAGE:
                        queues[topic_partition][0].was_corrupt = True
                    text = response.error_message
                    errors.append(
                        BrokerRefused(response.error_code, f"records to {topic_partition}", text)
                    )
        if errors:
            raise min(errors, key=lambda error: error.code in RETRIABLE)

    async def _produced(
        self,
        leader: BrokerId,
        partitions: Iterable[TopicPartition],
        queues: Queues,
        session: ProducerSession,
    ) -> dict[TopicPartition, PartitionProduceResponse]:
        """Send as many first batches as fit into one request; returns the leader's results."""
        topics: dict[str, TopicProduceData] = {}
        names = {}
        size_bytes = 0
        for topic_partition in partitions:
            if size_bytes >= REQUEST_BYTES:
                break
            topic = await self._client.topic(topic_partition.topic)
            names[topic.id] = topic.name
            topic_data = topics.setdefault(
                topic.name,
                TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=[]),
            )
            built = self._built(topic_partition, queues[topic_partition][0], session)
            size_bytes += len(built)
            topic_data.partition_data.append(
                PartitionProduceData(index=topic_partition.partition, records=built)
            )
        request = ProduceRequest(
            transactional_id=session.transactional_id,
            acks=self._acks,
            timeout_ms=self._client.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        connection = await self._client.connection(ToBroker(leader))
        version = connection.version_of(ProduceRequest)
        if not session.adds_implicitly:
            version = min(version, EXPLICIT_PRODUCE)
        if self._acks is Acks.NONE:
            connection.post(request, version)
            return {
                TopicPartition(topic.name, each.index): NO_RESPONSE
                for topic in request.topic_data
                for each in topic.partition_data
            }
        response = await connection.call(
            request, ProduceResponse, timeout_ms=self._client.request_timeout_ms, version=version
        )
        return {
            TopicPartition(topic.name or names[topic.topic_id], each.index): each
            for topic in response.responses
            for each in topic.partition_responses
        }

    def _built(
        self, topic_partition: TopicPartition, batch: _Batch, session: ProducerSession
    ) -> bytes:
        if not batch.built:
            sequence = session.sequences.get(topic_partition, 0) if session.is_idempotent else -1
            now_ms = self._clock.now_ms()
            batch.built = bytes(
                build_batch(
                    (
                        Record(
                            offset,
                            now_ms if record.timestamp is None else record.timestamp,
                            record.key,
                            record.value,
                            list(record.headers),
                        )
                        for offset, (_, record) in enumerate(batch.records)
                    ),
                    codec=self._codec,
                    level=self._level,
                    producer_id=session.producer_id,
                    producer_epoch=session.producer_epoch,
                    base_sequence=sequence,
                    transactional=session.transactional_id is not None,
                )
            )
        return batch.built

    def _written(
        self,
        topic_partition: TopicPartition,
        queues: Queues,
        results: _Results,
        session: ProducerSession,
        base_offset: int | None,
    ) -> None:
        batch = _taken(topic_partition, queues, [])
        first = session.sequences.get(topic_partition, 0)
        session.sequences[topic_partition] = (first + len(batch.records)) % SEQUENCES
        for index, (position, _) in enumerate(batch.records):
            offset = -1 if base_offset is None or base_offset < 0 else base_offset + index
            results.written[position] = ProducedRecord(topic_partition, Offset(offset))

    def _refused(
        self,
        topic_partition: TopicPartition,
        queues: Queues,
        results: _Results,
        response: PartitionProduceResponse,
    ) -> None:
        """Requeue the valid records of the first batch, none of which was written."""
        batch = queues[topic_partition][0]
        records = batch.records
        if response.error_code in TOO_LARGE and len(records) > 1:
            self._shrink(topic_partition.topic, queues, batch)
            return
        found = blame(len(records), response)
        for index, text in found.refused.items():
            about = f"record to {topic_partition}"
            refusal = BrokerRefused(response.error_code, about, text)
            results.refused[records[index][0]] = refusal
        _taken(
            topic_partition,
            queues,
            [_Batch([records[index] for index in part]) for part in found.again],
        )

    def _shrink(self, topic: str, queues: Queues, refused: _Batch) -> None:
        """Halve the batches of a topic, including future ones: otherwise each would be refused
        again until it is small enough.

        A refused batch is larger than `max.message.bytes`, so batches stay at least half as large
        as that.
        """
        size_bytes = sum(record.size_bytes for _, record in refused.records)
        refused.built = b""
        self._limits[topic] = limit = size_bytes // 2
        for each, queue in queues.items():
            if each.topic == topic:
                queues[each] = _recut(queue, limit)


def _add(queue: deque[_Batch], record: tuple[int, ProducerRecord], limit: int) -> None:
    """Append to the last batch, or start another one if that would exceed the limit."""
    size_bytes = record[1].size_bytes
    if not queue or queue[-1].built or queue[-1].size_bytes + size_bytes > limit:
        queue.append(_Batch())
    queue[-1].records.append(record)
    queue[-1].size_bytes += size_bytes


def _recut(queue: deque[_Batch], limit: int) -> deque[_Batch]:
    """The same records in smaller batches, except for a batch that a broker may have written."""
    smaller: deque[_Batch] = deque()
    for batch in queue:
        if batch.built:
            smaller.append(batch)
            continue
        for record in batch.records:
            _add(smaller, record, limit)
    return smaller


def _taken(topic_partition: TopicPartition, queues: Queues, instead: Sequence[_Batch]) -> _Batch:
    """Remove the first batch of a partition, replacing it in its queue by `instead`."""
    batch = queues[topic_partition].popleft()
    queues[topic_partition].extendleft(reversed(instead))
    if not queues[topic_partition]:
        del queues[topic_partition]
    return batch


def _cut(queues: Queues, first: int) -> None:
    """Drop the records after the first rejected one. No batch is in flight now."""
    for topic_partition, queue in list(queues.items()):
        parts = ([each for each in batch.records if each[0] < first] for batch in queue)
        queues[topic_partition] = deque(_Batch(part) for part in parts if part)
        if not queues[topic_partition]:
            del queues[topic_partition]
