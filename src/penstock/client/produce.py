"""A simple producer: idempotent, acked by all in-sync replicas, one batch a partition at a time."""

import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.client.cluster import Client
from penstock.client.errors import RETRIABLE, BrokerRefused, check
from penstock.client.metadata import NO_LEADER, TopicMetadata
from penstock.client.partitioner import StickyPartitioner, keyed_partition
from penstock.client.refused_batch import blame, is_records_fault
from penstock.client.route import ToBroker
from penstock.clock import Clock, SystemClock
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import SEQUENCES
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.record import Record
from penstock.types import BrokerId, Offset, TopicPartition
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

ALL_IN_SYNC = -1
BATCH_BYTES = 256 * 1024
REQUEST_BYTES = 4 * 1024 * 1024
RECORD_OVERHEAD_BYTES = 24
"""Lengths and deltas of a record take at most this; each header less than half of it."""
NO_TRANSACTION_MS = 60_000


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A record to be written; partition and time are chosen where they are None."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None
    timestamp: int | None = None

    @property
    def size_bytes(self) -> int:
        headers = (
            len(name.encode()) + len(value or b"") + RECORD_OVERHEAD_BYTES // 2
            for name, value in self.headers
        )
        return len(self.key or b"") + len(self.value or b"") + sum(headers) + RECORD_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """Where a record was written."""

    partition: TopicPartition
    offset: Offset


@dataclass(slots=True)
class _Batch:
    """Records on their way to one partition, each with its position in what was sent.

    Once built, the bytes stay as they are: a repeated batch must be the same batch.
    """

    records: list[tuple[int, ProducerRecord]] = field(default_factory=list)
    size_bytes: int = 0
    built: bytes = b""
    was_corrupt: bool = False


Queues: TypeAlias = dict[TopicPartition, deque[_Batch]]
"""Batches by partition; none of the queues is empty."""
Results: TypeAlias = dict[int, RecordMetadata | BrokerRefused]
"""By the record's position in what was sent."""


class IdempotentProducer:
    """One task sends at a time. After a failure the next `send` starts as a new producer.

    That is because nobody knows which batches were written: sequence numbers used again would
    have the broker take new records for repeated ones.
    """

    def __init__(
        self,
        client: Client,
        *,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        create_topics: bool = False,
        batch_bytes: int = BATCH_BYTES,
        clock: Clock | None = None,
    ) -> None:
        self._client, self._codec, self._level = client, codec, level
        self._create_topics, self._batch_bytes = create_topics, batch_bytes
        self._clock = clock or SystemClock()
        self._spreads: dict[str, StickyPartitioner] = {}
        self._identity: InitProducerIdResponse | None = None
        self._sequences: dict[TopicPartition, int] = {}

    async def send(self, records: Iterable[ProducerRecord]) -> list[RecordMetadata]:
        """Write the records, in order within each partition; where each one is, once all are."""
        delivered = []
        for result in await self.deliver(records):
            if not isinstance(result, RecordMetadata):
                assert result is not None, "a refusal comes before what was left out for it"
                raise result
            delivered.append(result)
        return delivered

    async def deliver(
        self, records: Iterable[ProducerRecord], *, past_refused: bool = False
    ) -> list[RecordMetadata | BrokerRefused | None]:
        """What became of each record, where a broker may refuse some.

        Records behind the first refused one are left out (None), except for those which had been
        written to other partitions by then; `past_refused` writes them too.
        """
        sent = list(records)
        try:
            topics = {name: await self._topic(name) for name in {each.topic for each in sent}}
            queues = self._queues(sent, topics)
            results: Results = {}
            while queues:
                await self._client.retrying(
                    lambda: self._round(queues, results), retry_on=RETRIABLE
                )
                if not past_refused:
                    _cut(queues, results)
        except BaseException:
            self._identity = None
            self._sequences.clear()
            raise
        return [results.get(position) for position in range(len(sent))]

    async def _topic(self, name: str) -> TopicMetadata:
        async def attempt() -> TopicMetadata:
            return await self._client.topic(name, create=self._create_topics)

        if self._create_topics:
            # The answer that starts the creation says UNKNOWN_TOPIC_OR_PARTITION.
            return await self._client.retrying(attempt, retry_on=RETRIABLE)
        return await self._client.retrying(attempt)

    def _queues(
        self, records: Sequence[ProducerRecord], topics: Mapping[str, TopicMetadata]
    ) -> Queues:
        """The records in batches, by partition."""
        queues: Queues = {}
        for position, record in enumerate(records):
            place = TopicPartition(record.topic, self._placed(record, topics[record.topic]))
            queue = queues.setdefault(place, deque([_Batch()]))
            size_bytes = record.size_bytes
            if queue[-1].records and queue[-1].size_bytes + size_bytes > self._batch_bytes:
                queue.append(_Batch())
            queue[-1].records.append((position, record))
            queue[-1].size_bytes += size_bytes
        for spread in self._spreads.values():
            spread.turn()
        return queues

    def _placed(self, record: ProducerRecord, topic: TopicMetadata) -> int:
        if record.partition is not None:
            if record.partition not in topic.partitions:
                where = f"{record.topic}-{record.partition}"
                raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, where)
            return record.partition
        if record.key is not None:
            return keyed_partition(record.key, len(topic.partitions))
        led = [each.index for each in topic.partitions.values() if each.leader != NO_LEADER]
        spread = self._spreads.get(topic.name)
        if spread is None:
            first = random.randrange(len(topic.partitions))  # noqa: S311  only spreads load
            spread = self._spreads[topic.name] = StickyPartitioner(self._batch_bytes, first)
        return spread.next(led or list(topic.partitions), record.size_bytes)

    async def _round(self, queues: Queues, results: Results) -> None:
        """Send the first batch of each partition; what was written or refused leaves its queue."""
        await self._identified()
        refusals: list[KafkaError] = []
        for leader, partitions in (await self._client.by_leader(queues)).items():
            try:
                answers = await self._produced(leader, partitions, queues)
            except KafkaError as error:
                refusals.append(error)
                continue
            for place, answer in answers.items():
                # A repeated batch that the broker has, but no longer knows where.
                if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                    self._written(place, queues, results, None)
                elif answer.error_code == ErrorCode.NONE:
                    self._written(place, queues, results, answer.base_offset)
                elif is_records_fault(answer.error_code, was_corrupt=queues[place][0].was_corrupt):
                    _refused(place, queues, results, answer)
                else:
                    if answer.error_code == ErrorCode.CORRUPT_MESSAGE:
                        queues[place][0].was_corrupt = True
                    words = answer.error_message
                    refusals.append(BrokerRefused(answer.error_code, f"records to {place}", words))
        if refusals:
            raise min(refusals, key=lambda refusal: refusal.code in RETRIABLE)

    async def _produced(
        self,
        leader: BrokerId,
        partitions: Iterable[TopicPartition],
        queues: Queues,
    ) -> dict[TopicPartition, PartitionProduceResponse]:
        """What the leader says of as many first batches as one request may hold."""
        topics: dict[str, TopicProduceData] = {}
        names = {}
        size_bytes = 0
        for place in partitions:
            if size_bytes >= REQUEST_BYTES:
                break
            topic = await self._client.topic(place.topic)
            names[topic.id] = topic.name
            asked = topics.setdefault(
                topic.name,
                TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=[]),
            )
            built = self._built(place, queues[place][0])
            size_bytes += len(built)
            asked.partition_data.append(PartitionProduceData(index=place.partition, records=built))
        request = ProduceRequest(
            acks=ALL_IN_SYNC,
            timeout_ms=self._client.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        connection = await self._client.connection(ToBroker(leader))
        response = await connection.call(
            request, ProduceResponse, timeout_ms=self._client.request_timeout_ms
        )
        return {
            TopicPartition(answer.name or names[answer.topic_id], each.index): each
            for answer in response.responses
            for each in answer.partition_responses
        }

    def _built(self, place: TopicPartition, batch: _Batch) -> bytes:
        if not batch.built:
            assert self._identity is not None
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
                    producer_id=self._identity.producer_id,
                    producer_epoch=self._identity.producer_epoch,
                    base_sequence=self._sequences.get(place, 0),
                )
            )
        return batch.built

    def _written(
        self,
        place: TopicPartition,
        queues: Queues,
        results: Results,
        base_offset: int | None,
    ) -> None:
        batch = _taken(place, queues, [])
        first = self._sequences.get(place, 0)
        self._sequences[place] = (first + len(batch.records)) % SEQUENCES
        for index, (position, _) in enumerate(batch.records):
            offset = -1 if base_offset is None else base_offset + index
            results[position] = RecordMetadata(place, Offset(offset))

    async def _identified(self) -> None:
        if self._identity is None:
            self._identity = await self._client.call(
                InitProducerIdRequest(
                    transactional_id=None, transaction_timeout_ms=NO_TRANSACTION_MS
                ),
                InitProducerIdResponse,
                check=lambda response: check(response.error_code, "producer id"),
                retry_on=RETRIABLE,
            )


def _refused(
    place: TopicPartition, queues: Queues, results: Results, answer: PartitionProduceResponse
) -> None:
    """Put those of the first batch that are not to blame back. None of it was written."""
    records = queues[place][0].records
    found = blame(len(records), answer)
    for index, words in found.refused.items():
        about = f"record to {place}"
        results[records[index][0]] = BrokerRefused(answer.error_code, about, words)
    _taken(place, queues, [_Batch([records[index] for index in part]) for part in found.again])


def _taken(place: TopicPartition, queues: Queues, instead: Sequence[_Batch]) -> _Batch:
    """The first batch of a partition, replaced in its queue."""
    batch = queues[place].popleft()
    queues[place].extendleft(reversed(instead))
    if not queues[place]:
        del queues[place]
    return batch


def _cut(queues: Queues, results: Results) -> None:
    """Leave out what comes behind the first refused record. No batch is on its way now."""
    refused = [at for at, result in results.items() if isinstance(result, BrokerRefused)]
    if not refused:
        return
    for place, queue in list(queues.items()):
        parts = ([each for each in batch.records if each[0] < min(refused)] for batch in queue)
        queues[place] = deque(_Batch(part) for part in parts if part)
        if not queues[place]:
            del queues[place]
