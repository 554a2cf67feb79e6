"""Whether the partitions that a produce request writes to take part in its transaction."""

from collections.abc import Iterator

from penstock.broker.context import Context
from penstock.broker.transactions import (
    as_producers_know_it,
    retriable_by_producers,
    taking_part,
)
from penstock.broker.translate.topics import topic_name
from penstock.coordinator.storage import Producer
from penstock.coordinator.transaction.refusal import ConcurrentTransactions
from penstock.coordinator.transaction.shard import Refused
from penstock.errors import KafkaError
from penstock.record.batch import BatchHeader, CorruptBatch, read_header
from penstock.replication.partition import Partition
from penstock.replication.refusal import NotEnoughReplicas
from penstock.types import TopicPartition
from penstock.wire.messages.produce import ProduceRequest


class Participation:
    """Of one request. Its coordinator is asked once, at the first partition that has to be asked
    about, for all of them: with every answer that adds partitions goes a record of the coordinator.
    """

    def __init__(self, request: ProduceRequest, ctx: Context) -> None:
        self._request, self._ctx = request, ctx
        self._adds = ctx.version >= 12
        """Newer clients do not add partitions: their first write does (KIP-890)."""
        self._answers: dict[tuple[Producer, TopicPartition], Refused] = {}

    def check(self, header: BatchHeader, partition: Partition, transactional_id: str) -> None:
        """Refuse what would open a transaction unknown to its coordinator: nobody could end it."""
        producer = Producer(header.producer_id, header.producer_epoch)
        config = self._ctx.services.config.transaction
        is_asked = self._adds or config.transaction_partition_verification_enable
        if not is_asked or has_open(partition, producer):
            return
        where = partition.topic_partition
        if (producer, where) not in self._answers:
            self._ask(transactional_id, producer, where)
        error = self._answers[producer, where]
        if error is not None:
            raise self._told(error) from error

    def _ask(self, transactional_id: str, producer: Producer, first: TopicPartition) -> None:
        places = tuple(dict.fromkeys((first, *self._others(producer))))
        answers = taking_part(
            transactional_id, producer, places, self._ctx.services, adds=self._adds
        )
        for where, answer in zip(places, answers, strict=True):
            self._answers[producer, where] = answer

    def _others(self, producer: Producer) -> Iterator[TopicPartition]:
        """Where else the request opens a transaction of the producer.

        What is wrong with the rest of it is told when its turn comes.
        """
        services = self._ctx.services
        for topic in self._request.topic_data:
            try:
                image = services.cluster.image
                name = topic_name(topic.name, topic.topic_id, image, by_id=self._ctx.version >= 13)
            except KafkaError:
                continue
            for part in topic.partition_data:
                partition = services.partitions.find(name, part.index)
                if partition is None or not partition.leads:
                    continue
                if writes_for(part.records, producer) and not has_open(partition, producer):
                    yield partition.topic_partition

    def _told(self, error: KafkaError) -> KafkaError:
        if self._adds and isinstance(error, ConcurrentTransactions):
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


def writes_for(data: object, producer: Producer) -> bool:
    """Whether these are records in a transaction of the producer, as far as their header tells."""
    if not isinstance(data, memoryview):
        return False
    try:
        header = read_header(data)
    except CorruptBatch:
        return False
    written_by = Producer(header.producer_id, header.producer_epoch)
    return header.is_transactional and written_by == producer
