"""Verifies that the partitions of a produce request are in its producer's open transaction."""

import asyncio
from collections.abc import Iterator

from penstock.broker.cluster import Cluster
from penstock.broker.transaction.verification import Verification
from penstock.broker.transaction.verifier import (
    Answers,
    TransactionVerifier,
    error_for_producer,
    retriable_by_producers,
)
from penstock.coordinator.result import Refused
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.errors import ErrorCode, KafkaError
from penstock.log.producer_state import OutOfOrderSequence
from penstock.record.batch import BatchHeader, CorruptBatch, read_header
from penstock.replication.errors import NotEnoughReplicas
from penstock.replication.partition import Partition
from penstock.replication.partition_lookup import topic_name
from penstock.replication.partitions import Partitions
from penstock.types import TopicPartition
from penstock.wire.messages.produce import ProduceRequest


class ProduceVerification:
    """The verifications of one produce request.

    They begin before anything is appended, in one call for all its partitions: each call that adds
    partitions costs the coordinator a record.
    """

    def __init__(
        self,
        request: ProduceRequest,
        version: int,
        verifier: TransactionVerifier,
        cluster: Cluster,
        partitions: Partitions,
    ) -> None:
        self._version, self._verifier = version, verifier
        self._cluster, self._partitions = cluster, partitions
        self._adds = version >= 12
        """Newer clients do not send AddPartitionsToTxn; their first write adds the partition."""
        self._is_needed = request.transactional_id is not None and (
            self._adds or cluster.config.transaction.transaction_partition_verification_enable
        )
        self._answers: dict[tuple[ProducerIdAndEpoch, TopicPartition], Refused] = {}
        self._awaited: list[
            tuple[ProducerIdAndEpoch, list[Verification], asyncio.Future[Answers]]
        ] = []
        self._verifications: dict[tuple[ProducerIdAndEpoch, TopicPartition], Verification] = {}
        if self._is_needed and request.transactional_id is not None and request.acks in {-1, 0, 1}:
            self._begin(request, request.transactional_id)

    @property
    def is_pending(self) -> bool:
        """Whether answers are outstanding."""
        return bool(self._awaited)

    async def wait(self) -> None:
        """Wait for all answers."""
        for producer, verifications, answers in self._awaited:
            for verification, answer in zip(verifications, await answers, strict=True):
                key = (producer, verification.partition.topic_partition)
                self._answers[key] = answer
                self._verifications[key] = verification

    def close(self) -> None:
        """End the verifications: the request is done."""
        for _, verifications, _ in self._awaited:
            for verification in verifications:
                self._verifier.pending.close(verification)

    def check(self, header: BatchHeader, partition: Partition) -> None:
        """Refuse a write that would open a transaction unknown to its coordinator: it would never
        end.
        """
        producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
        if not self._is_needed or has_open(partition, producer):
            return
        is_next = not is_unknown(partition, producer) or self._is_next(partition, producer, header)
        self._check_answer(producer, partition.topic_partition)
        if not is_next:
            # An earlier batch was refused and will be resent; it could not be appended behind this
            # one.
            raise OutOfOrderSequence(
                f"producer {producer.id} began with sequence {header.base_sequence}"
            )

    def _is_next(
        self, partition: Partition, producer: ProducerIdAndEpoch, header: BatchHeader
    ) -> bool:
        sequence = header.base_sequence
        if self._adds:
            return sequence == 0
        return self._verifier.pending.is_next(partition, producer, sequence)

    def _check_answer(self, producer: ProducerIdAndEpoch, topic_partition: TopicPartition) -> None:
        key = (producer, topic_partition)
        if key not in self._answers:
            raise NotEnoughReplicas("it was not led here when the coordinator was asked")
        error = self._answers[key]
        if error is not None:
            raise self._as_produce_answers(error) from error
        verification = self._verifications.get(key)
        if verification is not None and not verification.holds():
            raise NotEnoughReplicas("a marker has come since the coordinator was asked")

    def _begin(self, request: ProduceRequest, transactional_id: str) -> None:
        unverified: dict[ProducerIdAndEpoch, dict[TopicPartition, Partition]] = {}
        for producer, partition in self._writes(request):
            if not has_open(partition, producer):
                unverified.setdefault(producer, {})[partition.topic_partition] = partition
        for producer, written in unverified.items():
            answers = self._verifier.verify(
                transactional_id, producer, tuple(written), adds=self._adds
            )
            if isinstance(answers, tuple):
                for topic_partition, answer in zip(written, answers, strict=True):
                    self._answers[producer, topic_partition] = answer
            else:
                begin = self._verifier.pending.begin
                verifications = [begin(each, producer.id) for each in written.values()]
                self._awaited.append((producer, verifications, answers))

    def _writes(self, request: ProduceRequest) -> Iterator[tuple[ProducerIdAndEpoch, Partition]]:
        """The producers and partitions of transactional writes, as far as batch headers tell.

        Other errors of a partition are reported when it is appended.
        """
        for topic in request.topic_data:
            try:
                image = self._cluster.image
                name = topic_name(topic.name, topic.topic_id, image, by_id=self._version >= 13)
            except KafkaError:
                continue
            for part in topic.partition_data:
                partition = self._partitions.find(name, part.index)
                if partition is None or not partition.leads:
                    continue
                producer = transactional_producer(part.records)
                if producer is not None:
                    yield producer, partition

    def _as_produce_answers(self, error: KafkaError) -> KafkaError:
        if self._adds and error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            return error
        if retriable_by_producers(error):
            return NotEnoughReplicas(str(error))
        return error_for_producer(error, knows_abortable=self._version >= 11)


def has_open(partition: Partition, producer: ProducerIdAndEpoch) -> bool:
    """Whether the producer has an open transaction in the partition."""
    entry = partition.log.producers.producers.get(producer.id)
    return (
        entry is not None
        and entry.current_txn_first_offset is not None
        and entry.producer_epoch == producer.epoch
    )


def is_unknown(partition: Partition, producer: ProducerIdAndEpoch) -> bool:
    """Whether the partition has no state of the producer."""
    return producer.id not in partition.log.producers.producers


def transactional_producer(data: object) -> ProducerIdAndEpoch | None:
    """The producer of transactional records, as far as their header tells."""
    if not isinstance(data, memoryview):
        return None
    try:
        header = read_header(data)
    except CorruptBatch:
        return None
    return (
        ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
        if header.is_transactional
        else None
    )
