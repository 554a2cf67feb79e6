"""Whether the partitions that a produce request writes to take part in its transaction."""

import asyncio
from collections.abc import Iterator

from penstock.broker.context import Context
from penstock.broker.transaction.open_questions import Question
from penstock.broker.transaction.transactions import (
    Answers,
    as_producers_know_it,
    retriable_by_producers,
)
from penstock.broker.translate.topics import topic_name
from penstock.coordinator.storage import Producer
from penstock.coordinator.transaction.shard import Refused
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import BatchHeader, CorruptBatch, read_header
from penstock.replication.partition import Partition
from penstock.replication.refusal import NotEnoughReplicas
from penstock.types import TopicPartition
from penstock.wire.messages.produce import ProduceRequest


class Participation:
    """Of one request. Its coordinator is asked first, once for all partitions that have to be asked
    about: with every answer that adds partitions goes a record of the coordinator.
    """

    def __init__(self, request: ProduceRequest, ctx: Context) -> None:
        self._ctx = ctx
        self._adds = ctx.version >= 12
        """Newer clients do not add partitions: their first write does (KIP-890)."""
        self._is_asked = request.transactional_id is not None and (
            self._adds or ctx.services.config.transaction.transaction_partition_verification_enable
        )
        self._answers: dict[tuple[Producer, TopicPartition], Refused] = {}
        self._awaited: list[tuple[Producer, list[Question], asyncio.Future[Answers]]] = []
        self._questions: dict[tuple[Producer, TopicPartition], Question] = {}
        if request.transactional_id is not None and self._is_asked and request.acks in {-1, 0, 1}:
            self._ask(request, request.transactional_id)

    @property
    def waits(self) -> bool:
        """Whether an answer is still to come."""
        return bool(self._awaited)

    async def wait(self) -> None:
        """Until every answer is there."""
        for producer, questions, answers in self._awaited:
            for question, answer in zip(questions, await answers, strict=True):
                where = question.partition.topic_partition
                self._answers[producer, where] = answer
                self._questions[producer, where] = question

    def close(self) -> None:
        """The request has been carried out."""
        for _, questions, _ in self._awaited:
            for question in questions:
                self._ctx.services.open_questions.close(question)

    def check(self, header: BatchHeader, partition: Partition) -> None:
        """Refuse what would open a transaction unknown to its coordinator: nobody could end it."""
        producer = Producer(header.producer_id, header.producer_epoch)
        if not self._is_asked or has_open(partition, producer):
            return
        key = (producer, partition.topic_partition)
        if key not in self._answers:
            raise NotEnoughReplicas("it was not led here when the coordinator was asked")
        error = self._answers[key]
        if error is not None:
            raise self._told(error) from error
        question = self._questions.get(key)
        if question is not None and not question.holds():
            raise NotEnoughReplicas("a marker has come since the coordinator was asked")

    def _ask(self, request: ProduceRequest, transactional_id: str) -> None:
        services = self._ctx.services
        places: dict[Producer, dict[TopicPartition, Partition]] = {}
        for producer, partition in self._writes(request):
            if not has_open(partition, producer):
                places.setdefault(producer, {})[partition.topic_partition] = partition
        for producer, asked in places.items():
            answers = services.participants.ask(
                transactional_id, producer, tuple(asked), adds=self._adds
            )
            if isinstance(answers, tuple):
                for where, answer in zip(asked, answers, strict=True):
                    self._answers[producer, where] = answer
            else:
                begin = services.open_questions.begin
                questions = [begin(each, producer.id) for each in asked.values()]
                self._awaited.append((producer, questions, answers))

    def _writes(self, request: ProduceRequest) -> Iterator[tuple[Producer, Partition]]:
        """Who writes in a transaction, and where, as far as the headers tell.

        What is wrong with the rest of it is told when its turn comes.
        """
        services = self._ctx.services
        for topic in request.topic_data:
            try:
                image = services.cluster.image
                name = topic_name(topic.name, topic.topic_id, image, by_id=self._ctx.version >= 13)
            except KafkaError:
                continue
            for part in topic.partition_data:
                partition = services.partitions.find(name, part.index)
                if partition is None or not partition.leads:
                    continue
                producer = transactional_producer(part.records)
                if producer is not None:
                    yield producer, partition

    def _told(self, error: KafkaError) -> KafkaError:
        if self._adds and error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            return error
        if retriable_by_producers(error):
            return NotEnoughReplicas(str(error))
        return as_producers_know_it(error, knows_abortable=self._ctx.version >= 11)


def has_open(partition: Partition, producer: Producer) -> bool:
    entry = partition.log.producers.producers.get(producer.id)
    return (
        entry is not None
        and entry.current_txn_first_offset is not None
        and entry.producer_epoch == producer.epoch
    )


def transactional_producer(data: object) -> Producer | None:
    """Whose transaction these records are in, as far as their header tells."""
    if not isinstance(data, memoryview):
        return None
    try:
        header = read_header(data)
    except CorruptBatch:
        return None
    return Producer(header.producer_id, header.producer_epoch) if header.is_transactional else None
