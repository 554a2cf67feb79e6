"""One task of the sink: rows in, batches out, and what it did as its report."""

import random
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from penstock.client.errors import RETRIABLE, check
from penstock.clock import SystemClock
from penstock.record.record import Record
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.sink.batching import Batching, Identity, Sealed
from penstock.spark.sink.epoch import (
    Batch,
    Report,
    Resumed,
    Transaction,
    check_batches,
    check_remembered,
    is_committed,
)
from penstock.spark.sink.ordering import in_order
from penstock.spark.sink.placing import ByTask, Int32s, Spreading, Sticky, grouped, placed
from penstock.spark.sink.producer import Producer
from penstock.spark.sink.read_back import written_batches, written_rows
from penstock.spark.sink.resuming import Resuming
from penstock.spark.sink.rows import BadRow, SinkRows, sink_rows
from penstock.spark.sink.settings import SinkSettings
from penstock.spark.sink.transaction import add_partitions, transaction_progress
from penstock.types import TopicPartition
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_NO_TRANSACTION_MS = 60_000


def write(batches: Iterable[pa.RecordBatch], settings: SinkSettings) -> int:
    """Write the rows, each at least once, and each once while the task lives; how many."""
    with BlockingClient(settings.client) as client:
        producer = Producer(
            client, acks=settings.acks, delivery_timeout_ms=settings.delivery_timeout_ms
        )
        identity = _idempotent(client) if settings.idempotent else Identity()
        batching = _batching(settings, identity, lambda: settings.batch_bytes)
        first = random.randrange(1 << 16)  # noqa: S311  only spreads load
        rows = _Rows(settings, producer, batching, Sticky(first))
        for batch in _in_order(batches, settings):
            rows.write(batch)
        rows.finish()
        return rows.count


def write_in_transaction(
    batches: Iterator[pa.RecordBatch],
    settings: SinkSettings,
    transaction: Transaction,
    *,
    query: str,
    batch_id: int,
    task: int,
) -> Report:
    """Write the rows as part of the epoch's transaction, behind what an earlier attempt wrote."""
    if is_committed(transaction.markers, query, batch_id):
        for _ in batches:
            pass  # Spark waits until they are taken
        return Report(transaction, query, task, skipped=True)
    with BlockingClient(settings.client) as client:
        producer = Producer(
            client,
            transactional_id=transaction.id,
            implicit=transaction.implicit,
            delivery_timeout_ms=settings.delivery_timeout_ms,
        )
        identity = Identity(transaction.producer_id, transaction.producer_epoch, transactional=True)
        batching = _batching(settings, identity, varied(settings.batch_bytes))

        def read_back(place: TopicPartition, found: Resumed) -> Iterator[Record]:
            # A connection of its own: this one's answers are for the producer.
            with BlockingClient(settings.client) as reader:
                yield from written_rows(reader, place, transaction, found)

        resuming = Resuming(read_back)

        def begin(places: Iterable[TopicPartition]) -> None:
            new = [place for place in places if resuming.is_new(place)]
            if new:
                if settings.fails_without_marker:
                    check_remembered(transaction, query, batch_id, settings.topic)
                if not transaction.implicit:
                    add_partitions(client, transaction, new)
                found = transaction_progress(client, transaction, new)
                batching.sequences |= resuming.begin(found)

        rows = _Rows(settings, producer, batching, ByTask(task), begin, resuming)
        for batch in _in_order(batches, settings):
            rows.write(batch)
        resuming.finish()
        rows.finish()
        for place, found in transaction_progress(client, transaction, rows.sent).items():
            there = written_batches(client, place, transaction, found)
            check_batches(place, rows.sent[place], there)
        return Report(transaction, query, task, rows.written)


def varied(batch_bytes: int) -> Callable[[], int]:
    """Batch sizes by chance, between half and whole.

    A leader takes a batch for a repeated one if its first and last sequence are, whatever is in
    it. So attempts of a task that live side by side should not cut their rows alike: then one of
    them is told at once, instead of finding another's batches when it looks at its own.
    """
    dice = random.Random()  # noqa: S311  no secret
    return lambda: dice.randint(batch_bytes // 2, batch_bytes)


class _Rows:
    """The way of a task's rows to the producer."""

    def __init__(
        self,
        settings: SinkSettings,
        producer: Producer,
        batching: Batching,
        spreading: Spreading,
        begin: Callable[[Iterable[TopicPartition]], None] | None = None,
        resuming: Resuming | None = None,
    ) -> None:
        self._settings, self._producer, self._batching = settings, producer, batching
        self._spreading, self._begin, self._resuming = spreading, begin, resuming
        self._clock = SystemClock()
        self._partitions: dict[str, int] = {}
        self.count = 0
        self._places: set[TopicPartition] = set()
        self.sent: dict[TopicPartition, list[Batch]] = {}
        """All batches of this attempt, by which they are known again."""

    @property
    def written(self) -> dict[TopicPartition, int]:
        """Rows of the transaction by partition, an earlier attempt's included."""
        return {place: self._batching.sequences[place] for place in self._places}

    def write(self, batch: pa.RecordBatch) -> None:
        seen = sink_rows(batch, self._settings.columns, self._clock.now_ms())
        self.count += seen.count
        parts = [
            part for topic, rows in self._topics(seen) for part in self._placed(topic, rows, seen)
        ]
        self._places |= {place for place, _ in parts}
        if self._begin is not None:
            self._begin(place for place, _ in parts)
        for place, order in parts:
            left = order
            if self._resuming is not None:
                left = self._resuming.left(place, seen.rows, order)
            try:
                self._send(self._batching.add(place, seen.rows, left, seen.timestamps))
            except ValueError as error:
                raise BadRow(f"a row to {place}: {error}") from None

    def finish(self) -> None:
        self._send(self._batching.flush())
        self._producer.finish()

    def _send(self, batches: Iterable[Sealed]) -> None:
        ready = list(batches)
        for each in ready:
            kept = Batch(each.base_sequence, each.count, each.digest)
            self.sent.setdefault(each.place, []).append(kept)
        self._producer.send(ready)

    def _topics(self, seen: SinkRows) -> Iterable[tuple[str, Int32s | None]]:
        if seen.topics is not None:
            return seen.topics
        assert self._settings.topic is not None, "there is an option or a column"
        return [(self._settings.topic, None)]

    def _placed(
        self, topic: str, rows: Int32s | None, seen: SinkRows
    ) -> Iterator[tuple[TopicPartition, Int32s]]:
        count = self._partitions.get(topic)
        if count is None:
            count = self._partitions[topic] = len(self._producer.topic(topic).partitions)
        chosen = placed(topic, count, seen.rows, seen.partitions, seen.count, self._spreading)
        for partition, order in grouped(chosen, rows, count):
            yield TopicPartition(topic, partition), order


def _batching(settings: SinkSettings, identity: Identity, limit: Callable[[], int]) -> Batching:
    return Batching(identity, settings.codec, settings.level, limit, settings.buffer_bytes)


def _in_order(
    batches: Iterable[pa.RecordBatch], settings: SinkSettings
) -> Iterable[pa.RecordBatch]:
    filled = (batch for batch in batches if batch.num_rows)
    if not settings.columns.order:
        return filled
    return in_order(filled, settings.columns.order)


def _idempotent(client: BlockingClient) -> Identity:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_MS
    )
    made = client.call(
        request,
        InitProducerIdResponse,
        check=lambda response: check(response.error_code, "producer id"),
        retry_on=RETRIABLE,
    )
    return Identity(made.producer_id, made.producer_epoch)
