"""A producer: intercept, serialize, partition, queue; librdkafka batches and sends.

    with Producer({"bootstrap.servers": "127.0.0.1:9092"}, value=Json()) as producer:
        sent = producer.send("orders", {"id": 1}, key=b"1")
        print(sent.result().offset)

For asyncio there is `AsyncProducer`. Both may be used by several threads.
"""

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Generic, NoReturn, Self, cast

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from penstock.clock import Clock, SystemClock
from penstock.counted import counted
from penstock.sdk.defaults import Config, producer_config
from penstock.sdk.delivery import Delivery, metadata_of
from penstock.sdk.errors import (
    PartitionRefused,
    QueueFull,
    SdkError,
    SendFailed,
    SerializationFailed,
    UndeliveredRecords,
)
from penstock.sdk.interceptor import ProducerInterceptor, sent_through, tell_acknowledged
from penstock.sdk.partitioner import Partitioner
from penstock.sdk.partitions import PartitionCounts
from penstock.sdk.record import Header, K, Outgoing, RecordMetadata, V
from penstock.sdk.serde.protocol import Serializer
from penstock.sdk.stages import INTERVAL_MS, StagesHook, stats_callback
from penstock.sdk.trace import Stage, TraceHook, traced

logger = logging.getLogger(__name__)

POLL_S: Final = 0.05
IDLE_S: Final = 0.05
POLL_EVERY: Final = 100
"""A sender polls for delivery reports once per this many sends."""
ROOM_S: Final = 0.05
EXIT_S: Final = 10.0
KEPT_FAILURES: Final = 10_000
NO_PARTITION: Final = -1

_alive: "weakref.WeakSet[Producer[Any, Any]]" = weakref.WeakSet()


class Producer(Generic[K, V]):
    """`config` is librdkafka's; where its defaults differ from Kafka's, ours are Kafka's.

    Without a serializer, keys and values are bytes. `trace` is called for each record at each
    stage; `stages` is called every `statistics.interval.ms` (default: a second) with the number of
    records in each stage.
    """

    def __init__(
        self,
        config: Config,
        *,
        key: Serializer[K] | None = None,
        value: Serializer[V] | None = None,
        partitioner: Partitioner | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
        trace: TraceHook | None = None,
        stages: StagesHook | None = None,
        on_failure: Callable[[SendFailed], None] | None = None,
        max_block_ms: int = 60_000,
        clock: Clock | None = None,
    ) -> None:
        self._key_bytes = None if key is None else key.serialize
        self._value_bytes = None if value is None else value.serialize
        self._partitioner, self._chain, self._trace = partitioner, tuple(interceptors), trace
        self._on_failure, self._max_block_ms = on_failure, max_block_ms
        self._clock = clock or SystemClock()
        self._is_plain = not self._chain and partitioner is None and trace is None
        self._failed: list[tuple[Delivery, SendFailed]] = []
        self._more_failures = 0
        """Unobserved failures beyond the first `KEPT_FAILURES`. Their deliveries are not kept, so
        they stay counted even if a caller asks for the result later.
        """
        self._number = 0
        self._turns = POLL_EVERY
        self._wanted = threading.Event()
        self._closed = threading.Event()
        if stages is not None:
            mine = {"stats_cb": stats_callback(stages, config.get("stats_cb"))}
            config = {"statistics.interval.ms": INTERVAL_MS, **config, **mine}
        self.client = confluent_kafka.Producer(producer_config(config))
        """confluent-kafka's own producer, for calls that this class does not wrap."""
        self._produce = self.client.produce
        self._partitions = PartitionCounts(self.client, self._clock)
        self._thread = threading.Thread(
            target=_poll,
            args=(self.client, self._wanted, self._closed),
            name="penstock-producer",
            daemon=True,
        )
        self._thread.start()
        _alive.add(self)

    def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Queue a record; waits for room in the queue for up to `max_block_ms`."""
        if not self._is_plain:
            watched, again = self.offer(topic, value, key, headers, partition, timestamp_ms)
            if again is not None:
                self._wait_for_room(topic, again)
            return watched
        # The rest is an inlined copy of `offer`, which saves a call per record.
        raw_value: Any = value
        raw_key: Any = key
        try:
            if self._value_bytes is not None and value is not None:
                raw_value = self._value_bytes(value)
            if self._key_bytes is not None and key is not None:
                raw_key = self._key_bytes(key)
        except Exception as error:
            raise SerializationFailed(topic, _part(value, raw_value), error) from error
        delivery = Delivery(self)
        self._turns -= 1
        if self._turns <= 0:
            self._turns = POLL_EVERY
            self.client.poll(0)
        arguments = (
            topic,
            raw_value,
            raw_key,
            NO_PARTITION if partition is None else partition,
            delivery,
            delivery,  # as callback and as on_delivery: a None for one of them would win
            timestamp_ms or 0,
            list(headers) if headers else None,
        )
        try:
            self._produce(*arguments)  # type: ignore[arg-type]  # a header's value may be None
        except BufferError:
            self._wait_for_room(topic, lambda: self._queued(arguments))
        except KafkaException as error:
            _refused(topic, partition, error)
        return delivery

    def _wait_for_room(self, topic: str, again: Callable[[], bool]) -> None:
        deadline_ms = self._clock.monotonic_ms() + self._max_block_ms
        while not again():
            if self._clock.monotonic_ms() >= deadline_ms:
                raise QueueFull(topic, self._max_block_ms)
            self.client.poll(ROOM_S)

    def send_all(self, records: Iterable[Outgoing[K, V]]) -> list[RecordMetadata]:
        """Send a batch and wait until all of it is delivered; raises the first failure."""
        sent = [
            self.send(
                each.topic,
                each.value,
                key=each.key,
                headers=each.headers,
                partition=each.partition,
                timestamp_ms=each.timestamp_ms,
            )
            for each in records
        ]
        for each in sent:
            each.observed = True
        return [each.result() for each in sent]

    def offer(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        headers: Sequence[Header],
        partition: int | None,
        timestamp_ms: int | None,
    ) -> tuple[Delivery, Callable[[], bool] | None]:
        """Queue a record without waiting; if the queue is full, also returns a retry function."""
        record = Outgoing(topic, value, key, headers, partition, timestamp_ms)
        self._number = number = self._number + 1
        passed = sent_through(self._chain, record)
        topic, partition = passed.topic, passed.partition
        self._passed(Stage.INTERCEPTED, topic, number)
        raw_value = _serialized(topic, "value", passed.value, self._value_bytes)
        raw_key = _serialized(topic, "key", passed.key, self._key_bytes)
        self._passed(Stage.SERIALIZED, topic, number)
        if partition is None and self._partitioner is not None:
            partition = self._chosen(self._partitioner, topic, raw_key, raw_value)
        self._passed(Stage.PARTITIONED, topic, number, partition)
        delivery = Delivery(self, number)
        arguments = (
            topic,
            raw_value,
            raw_key,
            NO_PARTITION if partition is None else partition,
            delivery,
            delivery,
            passed.timestamp_ms or 0,
            list(passed.headers) or None,
        )

        def queued() -> bool:
            if not self._queued(arguments):
                return False
            self._passed(Stage.QUEUED, topic, number, partition)
            return True

        return delivery, None if queued() else queued

    def _queued(self, arguments: tuple[Any, ...]) -> bool:
        try:
            self._produce(*arguments)
        except BufferError:
            return False
        except KafkaException as error:
            _refused(arguments[0], arguments[3], error)
        return True

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything queued is delivered; raises failures that no caller observed."""
        left = self.client.flush(-1 if timeout_s is None else timeout_s)
        if left:
            raise TimeoutError(
                f"{counted(left, 'record is', 'records are')} still in the queue "
                f"after {timeout_s} s"
            )
        self._raise_failures()

    def close(self, timeout_s: float | None = None) -> None:
        """Flush, and end the producer's thread."""
        if self._closed.is_set():
            return
        try:
            left = self.client.flush(-1 if timeout_s is None else timeout_s)
        finally:
            self._closed.set()
            self._wanted.set()
            _alive.discard(self)
            self._thread.join()
        if left:  # librdkafka's own close would wait for them for minutes
            raise UndeliveredRecords(left, ())
        self.client.close()
        self._raise_failures()

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
        try:  # the block's own error propagates; delivery failures are only logged
            self.close(EXIT_S)
        except UndeliveredRecords as failed:
            logger.error("%s", failed)

    def _chosen(
        self, partitioner: Partitioner, topic: str, key: bytes | None, value: bytes | None
    ) -> int:
        count = self._partitions.of(topic)
        partition = partitioner(topic, key, value, count)
        if not isinstance(partition, int) or not 0 <= partition < count:
            raise PartitionRefused(topic, partition, count)
        return partition

    def reported(
        self, delivery: Delivery, error: KafkaError | None, message: confluent_kafka.Message
    ) -> SendFailed | None:
        """Handle what a delivery cannot by itself: failures, interceptors, the trace."""
        topic, latency = message.topic() or "", message.latency()
        failed = None if error is None else _failure(topic, message.partition(), error)
        if failed is not None:
            self._note_failure(delivery, failed)
        if self._is_plain:
            return failed
        self._passed(
            Stage.FAILED if failed else Stage.ACKNOWLEDGED,
            topic,
            delivery.number,
            message.partition(),
            None if latency is None else latency * 1000,
        )
        tell_acknowledged(self._chain, None if failed else metadata_of(message), failed)
        return failed

    def want_report(self) -> None:
        """A caller waits for a report: the thread polls without a break until nothing is queued."""
        self._wanted.set()

    def _note_failure(self, delivery: Delivery, failed: SendFailed) -> None:
        if self._on_failure is not None:
            delivery.observed = True
            try:
                self._on_failure(failed)
            except Exception:
                logger.exception("on_failure failed")
            return
        if len(self._failed) < KEPT_FAILURES:
            self._failed.append((delivery, failed))  # even if observed: its waiter may time out
        elif not delivery.observed:
            self._more_failures += 1

    def _raise_failures(self) -> None:
        failed, self._failed = self._failed, []
        more, self._more_failures = self._more_failures, 0
        unasked = [error for delivery, error in failed if not delivery.observed]
        if unasked or more:
            raise UndeliveredRecords(len(unasked) + more, unasked)

    def _passed(
        self,
        stage: Stage,
        topic: str,
        number: int,
        partition: int | None = None,
        latency_ms: float | None = None,
    ) -> None:
        if self._trace is not None:
            traced(self._trace, stage, topic, number, partition, latency_ms)


def _poll(
    client: confluent_kafka.Producer, wanted: threading.Event, closed: threading.Event
) -> None:
    """Serve delivery reports: at once while a caller waits, otherwise every `IDLE_S`.

    Polling all the time would compete with a busy sender for the interpreter; senders poll too.
    """
    while not closed.is_set():
        try:
            if wanted.wait(IDLE_S):
                wanted.clear()
                while len(client) and not closed.is_set():
                    client.poll(POLL_S)
            client.poll(0)
        except KafkaException as error:  # raised once; delivery reports say which records failed
            logger.error("the producer failed for good: %s", error.args[0])


def _part(value: object, raw_value: object) -> str:
    """The part whose serializer raised; the value is serialized first."""
    return "value" if raw_value is value else "key"


def _serialized(
    topic: str, part: str, value: Any, serialize: Callable[[Any], bytes] | None
) -> bytes | None:
    try:
        return value if value is None or serialize is None else serialize(value)
    except Exception as error:
        raise SerializationFailed(topic, part, error) from error


def _failure(topic: str, partition: int | None, error: KafkaError) -> SendFailed:
    return SendFailed(
        topic,
        partition,
        error.code(),
        error.str(),
        too_large=error.code() == KafkaError.MSG_SIZE_TOO_LARGE,
    )


def _refused(topic: str, partition: int | None, error: KafkaException) -> NoReturn:
    """A record that librdkafka refuses at once, such as one above message.max.bytes."""
    raise _failure(topic, partition, error.args[0]) from None


def _forget_after_fork() -> None:
    """Make a forked child refuse to send: it has none of librdkafka's threads, so its records would
    wait forever.
    """
    for producer in list(_alive):
        producer._produce = cast("Any", _refuse_after_fork)  # noqa: SLF001 - its own class
    _alive.clear()


def _refuse_after_fork(topic: str, *_: object) -> NoReturn:
    raise SdkError(f"a record for {topic} is not sent: its producer was made before a fork")


os.register_at_fork(after_in_child=_forget_after_fork)


@atexit.register
def _flush_at_exit() -> None:
    """A program that ends without closing its producers still delivers what it sent."""
    for producer in list(_alive):
        try:
            producer.close(EXIT_S)
        except UndeliveredRecords as failed:
            logger.error("at exit: %s", failed)
