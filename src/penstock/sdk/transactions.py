"""Consume, transform, produce: each batch and its results are one transaction.

    with Transactions(config, ["orders"], group="billing") as transactions:
        for records, output in transactions:
            for record in records:
                output.send("invoices", invoice(record.value), key=record.key)

Results and offsets of a batch are committed together when the loop asks for the next batch. If the
body raises, the transaction is aborted, and the next run reads the records again.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Generic, Self
from urllib.parse import quote
from uuid import uuid4

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.clock import Clock, SystemClock
from penstock.sdk.commit_mode import ManualCommit
from penstock.sdk.consumer import BATCH, Consumer
from penstock.sdk.defaults import Config, connection_settings
from penstock.sdk.errors import SdkError, SendFailed, TransactionUnanswered
from penstock.sdk.idle import POLL_S, Idle
from penstock.sdk.interceptor import ConsumerInterceptor, tell_committed
from penstock.sdk.producer import Producer
from penstock.sdk.record import K, PartitionId, Record, V
from penstock.sdk.serde.protocol import Deserializer

logger = logging.getLogger(__name__)

ANSWER_S: Final = 30.0
PRODUCERS: Final = "transaction."
"""Prefix of the settings in `config` that are meant for the producer."""


def transactional_id(group: str, instance: str) -> str:
    """Unique per group and instance. It begins with the group's name, so that ACLs can use that as
    a prefix; the instance follows the last colon.
    """
    return f"{group}:{quote(instance, safe='/')}"


class Transactions(Generic[K, V]):
    """`config` is the consumer's. The producer shares its connection and `transaction.*` settings,
    such as `transaction.timeout.ms`, and takes others from `producer_config`.

    `instance` names this copy of the program. With a stable name, a restart ends the transaction of
    a previous run at once; without one, the transaction ends by its time-out.
    """

    def __init__(
        self,
        config: Config,
        topics: Sequence[str],
        *,
        group: str,
        instance: str | None = None,
        key: Deserializer[K] | None = None,
        value: Deserializer[V] | None = None,
        producer_config: Config | None = None,
        batch: int = BATCH,
        interceptors: Sequence[ConsumerInterceptor] = (),
        is_stopping: Callable[[], bool] = lambda: False,
        clock: Clock | None = None,
    ) -> None:
        """Waits for records, and for brokers that do not answer, until `is_stopping`."""
        self.batch, self._chain = batch, tuple(interceptors)
        """`batch` is the most records that the next batch may have."""
        self._is_stopping = is_stopping
        self._clock = clock or SystemClock()
        of_producer = {name: each for name, each in config.items() if name.startswith(PRODUCERS)}
        self._consumer: Consumer[K, V] = Consumer(
            {
                "auto.offset.reset": "earliest",
                **{name: each for name, each in config.items() if name not in of_producer},
                "group.id": group,
                "isolation.level": "read_committed",
            },
            topics,
            key=key,
            value=value,
            commit=ManualCommit(),
            interceptors=self._chain,
            clock=self._clock,
            on_lost=self._lost,
            on_revoke=self._lost,
        )
        try:
            self.output: Producer[bytes, bytes] = Producer(
                {
                    **connection_settings(config),
                    **of_producer,
                    **(producer_config or {}),
                    "transactional.id": transactional_id(group, instance or uuid4().hex),
                },
                on_failure=self._not_delivered,  # its transaction fails too
                clock=self._clock,
            )
        except BaseException:  # for example a setting that librdkafka refuses
            self._consumer.close()
            raise
        self._transactional: confluent_kafka.Producer = self.output.client
        self._is_open = False
        self._starts: dict[PartitionId, int] = {}
        self._ends: dict[PartitionId, int] = {}
        self._held: dict[PartitionId, int] = {}
        """Paused partitions, and the time at which each resumes."""
        self._too_large: SendFailed | None = None
        self._moved = False
        """Partitions of the open transaction moved to another member: it must not commit."""
        try:
            self._transactional.init_transactions(ANSWER_S)
        except KafkaException:
            self._consumer.close()
            with suppress(KafkaException):  # the same error again
                self.output.close()
            raise

    def __iter__(self) -> Iterator[tuple[list[Record[K, V]], Producer[bytes, bytes]]]:
        return self.batches()

    def batches(
        self, idle_s: float | None = None
    ) -> Iterator[tuple[list[Record[K, V]], Producer[bytes, bytes]]]:
        """Yields each batch with the producer of its transaction. Ends after `idle_s` without
        records, as `Consumer.records` does, or when `is_stopping` and no records are left.
        """
        idle = Idle(idle_s)
        while True:
            self._resume_due()
            records = self._consumer.batch(self.batch, idle.timeout_s)
            if idle.is_over(records, has_joined=self._consumer.has_joined):
                return
            if not records and self._is_stopping():
                return
            if not records:
                continue
            self._starts = {(e.topic, e.partition): e.offset for e in reversed(records)}
            self._ends = self._consumer.take_back()
            self._moved, self._too_large = False, None
            self._transactional.begin_transaction()
            self._is_open = True
            yield records, self.output
            self.commit()

    def commit(self) -> None:
        """Commit the open transaction. The loop does so by itself, unless its body leaves it.

        If the group or the brokers refuse, the transaction is aborted and the batch is read again.
        A result that is too large raises then, since it would fail every time.
        """
        if not self._is_open:
            return
        offsets = [TopicPartition(*each, offset) for each, offset in self._ends.items()]
        try:
            if self._moved:
                raise SdkError("its partitions went to another member")
            self._transactional.send_offsets_to_transaction(
                offsets, self._consumer.client.consumer_group_metadata(), ANSWER_S
            )
            self._is_open = False  # first: an abort would conflict with an interrupted commit
            self._end(self._transactional.commit_transaction)
            tell_committed(self._chain, self._ends)
        except TransactionUnanswered:
            raise
        except (KafkaException, SdkError) as error:
            cause: Any = error.args[0]
            if isinstance(cause, KafkaError) and cause.fatal():
                self._is_open = False
                raise SdkError(f"the transaction failed for good: {cause.str()}") from None
            logger.warning("the transaction is aborted and its records are read again: %s", cause)
            self._is_open = True
            self.abort()
            if self._too_large is not None:
                raise self._too_large from None

    def abort(self) -> None:
        """Undo the open transaction; its records are read again."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._end(self._transactional.abort_transaction)
        except KafkaException as error:  # e.g. an outage longer than transaction.timeout.ms
            cause: Any = error.args[0]
            raise SdkError(f"the transaction failed for good: {cause.str()}") from None
        assigned = self._consumer.client.assignment()
        for each in self._consumer.client.committed(assigned, ANSWER_S) if assigned else ():
            start = self._starts.get((each.topic, each.partition), -1)
            offset = each.offset if each.offset >= 0 else start
            if offset >= 0:
                self._consumer.seek(each.topic, each.partition, offset)

    def _end(self, call: Callable[[float], object]) -> None:
        """Repeat a call with a retriable error: librdkafka continues it, and refuses others."""
        waited_s = 0.0
        while True:
            try:
                call(ANSWER_S)
                return
            except KafkaException as error:
                cause: Any = error.args[0]
                if not cause.retriable() or cause.code() == KafkaError._CONFLICT:  # noqa: SLF001 - its name
                    raise
                has_waited = cause.code() == KafkaError._TIMED_OUT  # noqa: SLF001 - its name
                waited_s += ANSWER_S if has_waited else POLL_S
                if waited_s >= ANSWER_S and self._is_stopping():
                    raise TransactionUnanswered from None
                logger.warning("the transaction waits for its brokers: %s", cause)
                if not has_waited:
                    self._transactional.poll(POLL_S)

    def hold(self, record: Record[Any, Any], delay_ms: int) -> None:
        """Read the partition again from this record on, after a delay.

        The open transaction commits only what came before the record: the caller leaves out the
        record, and those behind it in its partition, from the batch in hand.
        """
        at = record.topic, record.partition
        self._consumer.pause([at])
        self.give_back(record)
        self._held[at] = self._clock.monotonic_ms() + delay_ms

    def give_back(self, record: Record[Any, Any]) -> None:
        """Read the partition again from this record on; the transaction ends before it."""
        at = record.topic, record.partition
        self._ends[at] = record.offset
        self._consumer.seek(*at, record.offset)

    def _resume_due(self) -> None:
        now_ms = self._clock.monotonic_ms()
        due = [at for at, until_ms in self._held.items() if until_ms <= now_ms]
        for at in due:
            del self._held[at]
        if due:
            assigned = set(self._consumer.assignment)
            self._consumer.resume([at for at in due if at in assigned])

    def _not_delivered(self, failed: SendFailed) -> None:
        if failed.too_large:
            self._too_large = failed

    def _lost(self, partitions: Sequence[PartitionId]) -> None:
        self._moved = True
        held = [each for each in partitions if self._held.pop(each, None) is not None]
        if held:  # librdkafka would keep them paused even when they are assigned again
            self._consumer.resume(held)

    def close(self) -> None:
        """Abort an open transaction, and leave the group."""
        try:
            if self._is_open:
                self._is_open = False
                self._transactional.abort_transaction(ANSWER_S)
        finally:
            try:
                self._consumer.close()
            finally:
                self.output.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        try:  # the block's own error propagates; this one is only logged
            self.close()
        except (KafkaException, SdkError) as failed:
            logger.error("the end of the transactions failed too: %s", failed)
