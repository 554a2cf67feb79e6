"""An application: handlers for topics, each with its own guarantee, retries and dead letters.

    app = App({"bootstrap.servers": "127.0.0.1:9092"}, group="billing")

    @app.on("orders", value=Json(Order), retry=Backoff("1s,10s,1m"), dead_letters=True)
    async def bill(record: Record[bytes, Order]) -> None: ...

    app.run()

Handlers are functions or coroutines. Each subscription has a consumer of its own, on a thread of
its own: a slow topic does not hold up another.
"""

import inspect
import logging
import random
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from penstock.clock import Clock, SystemClock
from penstock.sdk.defaults import Config, connection_settings
from penstock.sdk.delivery import Delivery
from penstock.sdk.errors import HandlerFailed, SdkError, SendFailed
from penstock.sdk.exactly_once import ExactlyOnce, RecordHandler
from penstock.sdk.failure import NACKS, Backoff, FailurePolicy, RetryLater, Tries, failure_topics
from penstock.sdk.instance import Instance
from penstock.sdk.interceptor import ConsumerInterceptor, ProducerInterceptor
from penstock.sdk.parallel.consumer import Again, OnFailure, ParallelConsumer, RawRecord
from penstock.sdk.parallel.pool import AsyncioPool, Pool, ProcessPool, ThreadPool
from penstock.sdk.parallel.work import Order
from penstock.sdk.producer import Producer
from penstock.sdk.reading import RecordReader
from penstock.sdk.record import Outgoing
from penstock.sdk.serde.protocol import Deserializer

logger = logging.getLogger(__name__)

ANSWER_S: Final = 30.0
DRAIN_S: Final = 10.0

H = TypeVar("H", bound=RecordHandler)


class Guarantee(Enum):
    """How often a record is handled when a program dies at any moment."""

    AT_MOST_ONCE = "at most once"
    """The offset is committed before the record is handled."""
    AT_LEAST_ONCE = "at least once"
    """The offset is committed after the record is handled."""
    EXACTLY_ONCE = "exactly once"
    """`Outgoing` records from the handler are written in one transaction with the offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSubscription:
    """A handler and the options of its decorator."""

    topic: str
    handler: RecordHandler
    group: str
    key: Deserializer[Any] | None
    value: Deserializer[Any] | None
    guarantee: Guarantee
    order: Order
    workers: int
    processes: bool
    policy: FailurePolicy
    max_record_bytes: int | None
    most_buffered: int | None
    redo_at_most: int | None
    drain_s: float
    interceptors: Sequence[ConsumerInterceptor]
    config: Config


class App:
    """Register handlers by `on`; `run` serves them until `stop`, SIGTERM or SIGINT."""

    def __init__(
        self,
        config: Config,
        *,
        group: str,
        instance: str | None = None,
        state_dir: Path | None = None,
        interceptors: Sequence[ConsumerInterceptor | ProducerInterceptor] = (),
        clock: Clock | None = None,
    ) -> None:
        """`instance` names this copy of the program for exactly-once handlers; by default a
        generated name is stored in `state_dir`.

        `interceptors` apply to all handlers; those with `on_send` also apply to the records that
        handlers write.
        """
        self._config, self._group = dict(config), group
        self._instance, self._state_dir = instance, state_dir
        self._consuming: list[Any] = [e for e in interceptors if hasattr(e, "on_consume")]
        self._producing: list[Any] = [e for e in interceptors if hasattr(e, "on_send")]
        self._clock = clock or SystemClock()
        self._subscriptions: list[HandlerSubscription] = []
        self._running: list[ParallelConsumer[Any, Any] | ExactlyOnce] = []
        self._producer: Producer[bytes, bytes] | None = None
        self._redirects: Producer[bytes, bytes] | None = None
        """Producer for retries and dead letters, which must stay unchanged: no interceptors."""
        self._named: dict[str, Instance] = {}
        self._stopping = threading.Event()
        self._errors: list[BaseException] = []
        self._lock = threading.Lock()

    def on(
        self,
        topic: str,
        *,
        key: Deserializer[Any] | None = None,
        value: Deserializer[Any] | None = None,
        guarantee: Guarantee = Guarantee.AT_LEAST_ONCE,
        retry: Backoff | None = None,
        dead_letters: bool = False,
        nacks: int = NACKS,
        order: Order = Order.PARTITION,
        workers: int = 1,
        processes: bool = False,
        max_record_bytes: int | None = None,
        most_buffered: int | None = None,
        redo_at_most: int | None = None,
        drain_s: float | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        group: str | None = None,
        config: Config | None = None,
    ) -> Callable[[H], H]:
        """Handle the records of a topic; `config` has librdkafka's settings for it alone.

        `nacks` limits how often `nack(delay)` may give a record back.
        """
        if guarantee is not Guarantee.AT_LEAST_ONCE and retry:
            raise SdkError(f"{topic}: retry needs the guarantee at least once")
        if guarantee is Guarantee.AT_MOST_ONCE and workers > 1:
            raise SdkError(f"{topic}: workers need another guarantee than at most once")
        if max_record_bytes is not None and not dead_letters:
            raise SdkError(f"{topic}: max_record_bytes needs dead_letters=True")
        if guarantee is Guarantee.EXACTLY_ONCE:
            _check_exactly_once(
                topic,
                processes=processes,
                max_record_bytes=max_record_bytes,
                most_buffered=most_buffered,
                redo_at_most=redo_at_most,
            )
        member = group or self._group
        policy = FailurePolicy(failure_topics(topic, member), member, retry, dead_letters, nacks)

        def register(handler: H) -> H:
            is_async = inspect.iscoroutinefunction(handler)
            if processes and is_async:
                raise SdkError(f"{topic}: processes=True needs a function, not a coroutine")
            if guarantee is Guarantee.EXACTLY_ONCE and not is_async:
                _check_one_by_one(topic, workers, order)
            self._subscriptions.append(
                HandlerSubscription(
                    topic=topic,
                    handler=handler,
                    group=member,
                    key=key,
                    value=value,
                    guarantee=guarantee,
                    order=order,
                    workers=workers,
                    processes=processes,
                    policy=policy,
                    max_record_bytes=max_record_bytes,
                    most_buffered=most_buffered,
                    redo_at_most=redo_at_most,
                    drain_s=DRAIN_S if drain_s is None else drain_s,
                    interceptors=interceptors,
                    config=config or {},
                )
            )
            return handler

        return register

    @property
    def producer(self) -> Producer[bytes, bytes]:
        """Producer for handlers that write at least once; closed when the application ends."""
        with self._lock:
            if self._producer is None:
                self._producer = self._made_producer(self._producing)
            return self._producer

    @property
    def _redirecting(self) -> Producer[bytes, bytes]:
        with self._lock:
            if self._redirects is None:
                self._redirects = self._made_producer(())
            return self._redirects

    def _made_producer(self, chain: Sequence[ProducerInterceptor]) -> Producer[bytes, bytes]:
        config = {"linger.ms": 5, **connection_settings(self._config)}
        return Producer(config, interceptors=chain, clock=self._clock)

    def run(self) -> None:
        """Runs until stopped; raises the first error that ended a consumer."""
        with _stopped_by_signals(self.stop):
            try:
                self._run()
            finally:
                for producer in (self._producer, self._redirects):
                    if producer is not None:
                        producer.close()
                for instance in self._named.values():
                    instance.close()
        if self._errors:
            raise self._errors[0]

    def _run(self) -> None:
        self._create_topics()
        self._running = []  # a failed start may have left closed consumers
        try:
            for subscription in self._subscriptions:
                self._running.append(self._consumer(subscription))
        except BaseException:
            for consumer in self._running:
                consumer.close()
            raise
        threads = [
            threading.Thread(target=self._serve, args=(each,), name=f"penstock-{at}", daemon=True)
            for at, each in enumerate(self._running)
        ]
        for each in threads:
            each.start()
        try:
            while not self._stopping.wait(0.2):
                pass
        finally:
            for consumer in self._running:
                consumer.stop()
            for each in threads:
                each.join()

    def stop(self) -> None:
        """Finish what is in progress, commit, and let `run` return."""
        self._stopping.set()

    def _serve(self, consumer: ParallelConsumer[Any, Any] | ExactlyOnce) -> None:
        try:
            consumer.run()
        except Exception as error:
            logger.exception("a consumer ended; the application stops")
            self._errors.append(error)
        finally:
            self.stop()

    def _consumer(self, of: HandlerSubscription) -> ParallelConsumer[Any, Any] | ExactlyOnce:
        config = {
            "auto.offset.reset": "earliest",
            **self._config,
            **of.config,
            "group.id": of.group,
        }
        topics = [of.topic]
        if of.policy.retry is not None and not of.policy.retry.in_place:
            topics.append(of.policy.topics.again)
        interceptors = [*self._consuming, *of.interceptors]
        if of.guarantee is Guarantee.EXACTLY_ONCE:
            return ExactlyOnce(
                config,
                of.topic,
                of.handler,
                RecordReader(of.key, of.value),
                of.policy,
                instance=self._instance_of(of),
                order=of.order,
                workers=of.workers,
                drain_s=of.drain_s,
                interceptors=interceptors,
                output_interceptors=self._producing,
                clock=self._clock,
            )
        pool = _pool(of)
        try:
            return self._parallel_consumer(of, config, topics, pool, interceptors)
        except BaseException:
            pool.close()
            raise

    def _parallel_consumer(
        self,
        of: HandlerSubscription,
        config: Config,
        topics: Sequence[str],
        pool: Pool,
        interceptors: Sequence[ConsumerInterceptor],
    ) -> ParallelConsumer[Any, Any]:
        return ParallelConsumer(
            config,
            topics,
            pool,
            key=of.key,
            value=of.value,
            order=of.order,
            commit_first=of.guarantee is Guarantee.AT_MOST_ONCE,
            on_failure=self._on_failure(of.policy),
            max_record_bytes=of.max_record_bytes,
            most_buffered=of.most_buffered,
            redo_at_most=of.redo_at_most,
            drain_s=of.drain_s,
            interceptors=interceptors,
            clock=self._clock,
        )

    def _instance_of(self, of: HandlerSubscription) -> str:
        """Survives restarts and belongs to this handler alone: a second holder would be fenced."""
        given = self._instance or of.config.get("group.instance.id")
        given = given or self._config.get("group.instance.id")
        if given is None:
            if of.group not in self._named:
                self._named[of.group] = Instance(self._state_dir, of.group)
            given = self._named[of.group].name
        same = [e for e in self._subscriptions if (e.topic, e.group) == (of.topic, of.group)]
        number = next(at for at, each in enumerate(same) if each is of)
        return f"{of.topic}/{number}/{given}"  # unique: topic names have no slash

    def _on_failure(self, policy: FailurePolicy) -> OnFailure:
        def failed(record: RawRecord, error: BaseException, tries: Tries) -> Delivery | Again:
            chance = random.random()  # noqa: S311 - only spreads load
            decision = policy.decide(record, error, tries, chance)
            match decision:
                case RetryLater(delay_ms, is_nack):
                    return Again(delay_ms, is_nack)
                case Outgoing():
                    to = self._redirecting
                    return redirected(to, decision, policy, record, error, tries.attempt)
                case None:
                    at = record.topic, record.partition, record.offset
                    raise HandlerFailed(*at, error) from error

        return failed

    def _create_topics(self) -> None:
        """Create the topics for retries and dead letters; the application makes the others."""
        wanted: list[NewTopic] = []
        settings: dict[str, dict[str, str]] = {}
        for each in self._subscriptions:
            topics, retry = each.policy.topics, each.policy.retry
            if retry is not None and not retry.in_place:
                settings[topics.retry] = topics.retry_settings(retry)
                wanted.append(NewTopic(topics.retry, config=settings[topics.retry]))
                wanted.append(NewTopic(topics.again))
            if each.policy.dead_letters:
                wanted.append(NewTopic(topics.dead_letters))
        if not wanted:
            return
        admin = AdminClient(connection_settings(self._config))
        for name, future in admin.create_topics(wanted).items():
            try:
                future.result(ANSWER_S)
            except KafkaException as error:
                cause = error.args[0]
                if cause.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    if name in settings:
                        _set_settings(admin, name, settings[name])
                    continue
                hint = ""
                if cause.code() == KafkaError.INVALID_CONFIG:
                    hint = "; retry topics need Penstock: use Backoff(..., in_place=True)"
                raise SdkError(f"topic {name} cannot be created: {cause.str()}{hint}") from None


def _set_settings(admin: AdminClient, topic: str, wanted: Mapping[str, str]) -> None:
    """Update an existing retry topic: the handler's back-off may have changed since."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        found = admin.describe_configs([resource])[resource].result(ANSWER_S)
        changed = {
            name: value
            for name, value in wanted.items()
            if name not in found or found[name].value != value
        }
        if not changed:
            return
        for name, value in changed.items():
            resource.add_incremental_config(
                ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            )
        admin.incremental_alter_configs([resource])[resource].result(ANSWER_S)
        logger.info("topic %s: set %s", topic, changed)
    except KafkaException as error:
        cause = error.args[0]
        logger.warning("topic %s keeps its settings, not %s: %s", topic, wanted, cause.str())


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGINT call `stop` inside the block; then the old handlers are restored."""
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, lambda *_: stop())
    try:
        yield
    finally:
        for number, handler in before.items():  # None: the handler was not set by Python
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _check_exactly_once(topic: str, **options: object) -> None:
    given = [name for name, option in options.items() if option not in (None, False)]
    if given:
        are = "is" if len(given) == 1 else "are"
        raise SdkError(f"{topic}: {' and '.join(given)} {are} not for the guarantee exactly once")


def _check_one_by_one(topic: str, workers: int, order: Order) -> None:
    if workers > 1 or order is not Order.PARTITION:
        raise SdkError(
            f"{topic}: exactly once, a function handles one record after the other; workers and "
            "order need a coroutine (async def)"
        )


def redirected(
    producer: Producer[bytes, bytes],
    outgoing: Outgoing[bytes, bytes],
    policy: FailurePolicy,
    record: RawRecord,
    error: BaseException,
    attempt: int,
) -> Delivery:
    """Send a failed record to its retry or dead-letter topic. A record too large even for the dead
    letters leaves a stub there.
    """
    result = Delivery()

    def send(what: Outgoing[bytes, bytes], *, is_stub: bool) -> None:
        def on_result() -> None:
            failed = sent.failure
            if failed is None:
                result.settle(sent.report)
            else:
                on_failure(failed)

        def on_failure(failed: SendFailed) -> None:
            if failed.too_large and not is_stub and policy.dead_letters:
                send(policy.stub(record, error, attempt), is_stub=True)
            else:
                result.settle(None, failed)

        try:
            sent = producer.send(what.topic, what.value, key=what.key, headers=what.headers)
        except SendFailed as failed:
            on_failure(failed)
        else:
            sent.when_done(on_result)

    send(outgoing, is_stub=False)
    return result


def _pool(of: HandlerSubscription) -> Pool:
    if inspect.iscoroutinefunction(of.handler):
        return AsyncioPool(of.handler, of.workers)
    if of.processes:
        return ProcessPool(of.handler, of.workers)
    return ThreadPool(of.handler, of.workers)
