"""One task of the sink: encodes its rows into batches, sends them, and reports what it wrote."""

import random
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from penstock.client.errors import RETRIABLE, check
from penstock.clock import SystemClock
from penstock.record.record import Record
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.sink.accumulator import ProducerIdentity, RecordAccumulator, SealedBatch
from penstock.spark.sink.epoch import (
    BatchDigest,
    Resumed,
    SparkTransaction,
    TaskReport,
    check_checkpoint,
    check_marker_exists,
    check_own_batches,
    is_committed,
)
from penstock.spark.sink.fingerprint import fingerprint
from penstock.spark.sink.ordering import in_order
from penstock.spark.sink.partitioning import (
    Int32s,
    Partitioner,
    RoundRobinPartitioner,
    TaskPartitioner,
    chosen_partitions,
    rows_by_partition,
)
from penstock.spark.sink.producer import SinkProducer
from penstock.spark.sink.read_back import written_batches, written_rows
from penstock.spark.sink.resuming import Resuming
from penstock.spark.sink.rows import BadRow, SinkRows, sink_rows
from penstock.spark.sink.settings import SinkSettings
from penstock.spark.sink.transaction import add_partitions, transaction_progress
from penstock.types import TopicPartition
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_NO_TRANSACTION_MS = 60_000


def write(batches: Iterable[pa.RecordBatch], settings: SinkSettings) -> int:
    """Write the rows at least once, and exactly once unless the task fails; returns their count."""
    with BlockingClient(settings.client) as client:
        producer = SinkProducer(
            client, acks=settings.acks, delivery_timeout_ms=settings.delivery_timeout_ms
        )
        identity = _idempotent(client) if settings.idempotent else ProducerIdentity()
        accumulator = _accumulator(settings, identity, lambda: settings.batch_bytes)
        first = random.randrange(1 << 16)  # noqa: S311  only spreads load
        rows = _Rows(settings, producer, accumulator, RoundRobinPartitioner(first))
        for batch in _in_order(batches, settings):
            rows.write(batch)
        rows.finish()
        return rows.count


def write_in_transaction(
    batches: Iterator[pa.RecordBatch],
    settings: SinkSettings,
    transaction: SparkTransaction,
    *,
    query: str,
    batch_id: int,
    task: int,
) -> TaskReport:
    """Write the rows in the epoch's transaction, after those of an earlier attempt."""
    check_checkpoint(transaction, query, batch_id)
    if is_committed(transaction.markers, query, batch_id):
        count = total = 0
        for batch in batches:  # Spark waits until all are consumed
            seen = _sink_rows(batch, settings)
            count += seen.count
            total += fingerprint(seen)
        return TaskReport(transaction, query, task, {}, count, total, skipped=True)
    with BlockingClient(settings.client) as client:
        producer = SinkProducer(
            client,
            transactional_id=transaction.id,
            implicit=transaction.implicit,
            delivery_timeout_ms=settings.delivery_timeout_ms,
        )
        identity = ProducerIdentity(
            transaction.producer_id, transaction.producer_epoch, transactional=True
        )
        accumulator = _accumulator(settings, identity, varied(settings.batch_bytes))

        def read_back(topic_partition: TopicPartition, found: Resumed) -> Iterator[Record]:
            # A client of its own: responses on the producer's connections belong to the producer.
            with BlockingClient(settings.client) as reader:
                yield from written_rows(reader, topic_partition, transaction, found)

        resuming = Resuming(read_back)

        def begin(partitions: Iterable[TopicPartition]) -> None:
            new = [tp for tp in partitions if resuming.is_new(tp)]
            if new:
                if settings.fails_without_marker:
                    check_marker_exists(transaction, query, batch_id, settings.topic)
                if not transaction.implicit:
                    add_partitions(client, transaction, new)
                found = transaction_progress(client, transaction, new)
                accumulator.sequences |= resuming.begin(found)

        rows = _Rows(settings, producer, accumulator, TaskPartitioner(task), begin, resuming)
        for batch in _in_order(batches, settings):
            rows.write(batch)
        resuming.finish()
        rows.finish()
        for tp, found in transaction_progress(client, transaction, rows.sent).items():
            there = written_batches(client, tp, transaction, found)
            check_own_batches(tp, rows.sent[tp], there)
        return TaskReport(transaction, query, task, rows.written, rows.count, rows.fingerprint)


def varied(batch_bytes: int) -> Callable[[], int]:
    """Random batch sizes, between half of `batch_bytes` and all of it.

    A leader takes a batch for a duplicate if its first and last sequence numbers match, whatever it
    holds. So concurrent attempts of a task should cut their rows differently: then one of them is
    refused at once, instead of finding the other's batches when it reads back its own.
    """
    dice = random.Random()  # noqa: S311  no secret
    return lambda: dice.randint(batch_bytes // 2, batch_bytes)


class _Rows:
    """Brings a task's rows to the producer."""

    def __init__(
        self,
        settings: SinkSettings,
        producer: SinkProducer,
        accumulator: RecordAccumulator,
        partitioner: Partitioner,
        begin: Callable[[Iterable[TopicPartition]], None] | None = None,
        resuming: Resuming | None = None,
    ) -> None:
        self._settings, self._producer, self._accumulator = settings, producer, accumulator
        self._partitioner, self._begin, self._resuming = partitioner, begin, resuming
        self._partition_counts: dict[str, int] = {}
        self.count = 0
        self.fingerprint = 0
        """The fingerprint of the rows so far; 0 outside of transactions, where it is not used."""
        self._partitions: set[TopicPartition] = set()
        self.sent: dict[TopicPartition, list[BatchDigest]] = {}
        """All batches of this attempt, to recognize them when they are read back."""

    @property
    def written(self) -> dict[TopicPartition, int]:
        """Rows of the transaction by partition, including those of an earlier attempt."""
        return {tp: self._accumulator.sequences[tp] for tp in self._partitions}

    def write(self, batch: pa.RecordBatch) -> None:
        seen = _sink_rows(batch, self._settings)
        self.count += seen.count
        if self._resuming is not None:
            self.fingerprint += fingerprint(seen)
        parts = [
            part for topic, rows in self._topics(seen) for part in self._placed(topic, rows, seen)
        ]
        self._partitions |= {tp for tp, _ in parts}
        if self._begin is not None:
            self._begin(tp for tp, _ in parts)
        for tp, order in parts:
            left = order
            if self._resuming is not None:
                left = self._resuming.unwritten(tp, seen.rows, order)
            try:
                self._send(self._accumulator.add(tp, seen.rows, left, seen.timestamps))
            except ValueError as error:
                raise BadRow(f"a row to {tp}: {error}") from None

    def finish(self) -> None:
        self._send(self._accumulator.flush())
        self._producer.finish()

    def _send(self, batches: Iterable[SealedBatch]) -> None:
        ready = list(batches)
        for each in ready:
            batch = BatchDigest(each.base_sequence, each.count, each.digest)
            self.sent.setdefault(each.topic_partition, []).append(batch)
        self._producer.send(ready)

    def _topics(self, seen: SinkRows) -> Iterable[tuple[str, Int32s | None]]:
        if seen.topics is not None:
            return seen.topics
        assert self._settings.topic is not None, "option topic or column topic is set"
        return [(self._settings.topic, None)]

    def _placed(
        self, topic: str, rows: Int32s | None, seen: SinkRows
    ) -> Iterator[tuple[TopicPartition, Int32s]]:
        count = self._partition_counts.get(topic)
        if count is None:
            count = self._partition_counts[topic] = len(self._producer.topic(topic).partitions)
        chosen = chosen_partitions(
            topic, count, seen.rows, seen.partitions, seen.count, self._partitioner, rows
        )
        for partition, order in rows_by_partition(chosen, rows, count):
            yield TopicPartition(topic, partition), order


def _sink_rows(batch: pa.RecordBatch, settings: SinkSettings) -> SinkRows:
    value = settings.value
    if value is not None:
        from penstock.spark.confluent.encode import encoder  # late: rarely needed

        encode = encoder(value.format, value.registry, value.subject, value.schema)
        at = settings.columns.value
        batch = batch.set_column(at, "value", encode(batch.column(at)))
    return sink_rows(batch, settings.columns, SystemClock().now_ms())


def _accumulator(
    settings: SinkSettings, identity: ProducerIdentity, limit: Callable[[], int]
) -> RecordAccumulator:
    return RecordAccumulator(identity, settings.codec, settings.level, limit, settings.buffer_bytes)


def _in_order(
    batches: Iterable[pa.RecordBatch], settings: SinkSettings
) -> Iterable[pa.RecordBatch]:
    filled = (batch for batch in batches if batch.num_rows)
    if not settings.columns.order:
        return filled
    return in_order(filled, settings.columns.order)


def _idempotent(client: BlockingClient) -> ProducerIdentity:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_MS
    )
    made = client.call(
        request,
        InitProducerIdResponse,
        check=lambda response: check(response.error_code, "producer id"),
        retry_on=RETRIABLE,
    )
    return ProducerIdentity(made.producer_id, made.producer_epoch)
