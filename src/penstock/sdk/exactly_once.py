"""A handler whose results are written in one transaction with the offsets that it read."""

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from confluent_kafka import KafkaError

from penstock.clock import Clock, SystemClock
from penstock.sdk.batch_size import BatchSize
from penstock.sdk.consumer import BATCH
from penstock.sdk.defaults import Config
from penstock.sdk.delivery import Delivery, metadata_of
from penstock.sdk.errors import HandlerFailed, SendFailed
from penstock.sdk.failure import FailurePolicy
from penstock.sdk.handling_thread import HandlingThread
from penstock.sdk.interceptor import (
    ConsumerInterceptor,
    ProducerInterceptor,
    consumed_through,
    sent_through,
    tell_acknowledged,
    tell_committed,
)
from penstock.sdk.parallel.work import Order, Work, lane_of
from penstock.sdk.producer import Producer
from penstock.sdk.reading import RecordReader
from penstock.sdk.record import Outgoing, PartitionId, Record
from penstock.sdk.transactions import Transactions

logger = logging.getLogger(__name__)

POLL_INTERVAL_MS: Final = 300_000
"""librdkafka's default."""
LOOK_S: Final = 0.2

RawRecord: TypeAlias = Record[bytes, bytes]
RecordHandler: TypeAlias = Callable[[Record[Any, Any]], object | Awaitable[object]]
RecordId: TypeAlias = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Held:
    """The record was given back by `nack`; its partition waits."""

    delay_ms: int


Result: TypeAlias = Sequence[Outgoing[bytes, bytes]] | Held
Results: TypeAlias = Mapping[RecordId, Result]


class ExactlyOnce:
    """Handles batches of records, each in one transaction with its results and dead letters.

    Results are written in the order of the records. Coroutines of a batch run concurrently, up to
    `workers`, as far as `order` permits; plain functions run one by one. A batch ends early after a
    third of `max.poll.interval.ms`, and when the program stops: the rest is read again.
    """

    def __init__(
        self,
        config: Config,
        topic: str,
        handler: RecordHandler,
        reader: RecordReader[Any, Any],
        policy: FailurePolicy,
        *,
        instance: str,
        order: Order = Order.PARTITION,
        workers: int = 1,
        drain_s: float = 10.0,
        interceptors: Sequence[ConsumerInterceptor] = (),
        output_interceptors: Sequence[ProducerInterceptor] = (),
        clock: Clock | None = None,
    ) -> None:
        self._handler, self._reader, self._policy = handler, reader, policy
        self._order, self._workers, self._drain_s = order, workers, drain_s
        self._clock = clock or SystemClock()
        interval_ms = int(config.get("max.poll.interval.ms", POLL_INTERVAL_MS))
        # The rest of the interval is left for handlers in progress and for the commit.
        self._size = BatchSize(BATCH, interval_ms // 3)
        self._chain, self._output_chain = tuple(interceptors), tuple(output_interceptors)
        self._stopping = threading.Event()
        self._stopped_s = 0.0
        self._too_large: dict[RecordId, list[SendFailed]] = {}
        """Too-large errors by source record: first for its results, then for its dead letter."""
        self._nacks: dict[RecordId, int] = {}
        self._is_careful = False
        self._transactions: Transactions[bytes, bytes] = Transactions(
            config,
            [topic],
            group=policy.group,
            instance=instance,
            interceptors=[_Commits(self._chain)] if self._chain else (),
            is_stopping=self._stopping.is_set,
            clock=self._clock,
        )

    def run(self) -> None:
        with self._transactions as transactions, HandlingThread[Results]() as thread:
            for records, output in transactions:
                results = self._awaited(thread.submit(partial(self._handled, records)))
                if results is None:
                    return  # with the transaction open: leaving the block aborts it
                if not self._sent(records, results, output):
                    transactions.abort()  # the next pass gives up what is too large
                elif self._stopping.is_set():
                    transactions.commit()
                    return
                transactions.batch = self._size.now

    def stop(self) -> None:
        self._stopped_s = time.monotonic()
        self._stopping.set()

    def close(self) -> None:
        """Call this only if `run` is not called."""
        self._transactions.close()

    def _awaited(self, handling: "Future[Results]") -> Results | None:
        """None if the handlers take longer than `drain_s` after `stop`."""
        while not wait([handling], LOOK_S).done:
            if self._stopping.is_set() and time.monotonic() - self._stopped_s >= self._drain_s:
                logger.warning("a handler does not end; its transaction is aborted")
                return None
        return handling.result()

    def _handled(self, records: list[RawRecord], runner: asyncio.Runner) -> Results:
        """Results by record; records behind a held one, and those beyond the time, have none."""
        began_ms = self._clock.monotonic_ms()
        self._forget_refusals(records)
        done: dict[RecordId, Result] = {}

        def is_over() -> bool:
            """False until at least one record is handled."""
            late = self._clock.monotonic_ms() - began_ms >= self._size.allowed_ms
            return bool(done) and (late or self._stopping.is_set())

        if inspect.iscoroutinefunction(self._handler):
            work: Work[RawRecord] = Work(lane_of(self._order))
            for raw in records:
                work.add(raw)
            runner.run(self._handled_side_by_side(work, done, is_over))
        else:
            self._handled_one_by_one(records, done, is_over)
        self._size.note(len(done), self._clock.monotonic_ms() - began_ms)
        return done

    def _forget_refusals(self, records: list[RawRecord]) -> None:
        """Forget errors of records before this batch: they are committed and do not come again."""
        if self._too_large:
            starts = {(each.topic, each.partition): each.offset for each in reversed(records)}
            for topic, partition, offset in list(self._too_large):
                if offset < starts.get((topic, partition), 0):
                    del self._too_large[topic, partition, offset]

    def _handled_one_by_one(
        self, records: list[RawRecord], done: dict[RecordId, Result], is_over: Callable[[], bool]
    ) -> None:
        held: set[PartitionId] = set()
        for raw in records:
            if is_over():
                return
            if (raw.topic, raw.partition) in held:
                continue
            done[raw.id] = self._result(raw, self._handler)
            if isinstance(done[raw.id], Held):
                held.add((raw.topic, raw.partition))

    async def _handled_side_by_side(
        self, work: Work[RawRecord], done: dict[RecordId, Result], is_over: Callable[[], bool]
    ) -> None:
        handler: Any = self._handler
        lane_of_record, held = lane_of(self._order), set[Hashable]()
        failures: list[HandlerFailed] = []

        async def handle_all() -> None:
            """A task that finishes a record takes the next one ready, so none is left behind."""
            try:
                await handle_next()
            except HandlerFailed as failed:
                failures.append(failed)

        async def handle_next() -> None:
            while not failures and not is_over() and (raw := work.next()) is not None:
                lane = lane_of_record(raw)
                if lane not in held:
                    done[raw.id] = await self._result_later(raw, handler)
                    if lane is not None and isinstance(done[raw.id], Held):
                        held.add(lane)
                work.done(raw)

        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(handle_all())
        if failures:
            raise failures[0]

    def _sent(
        self,
        records: list[RawRecord],
        results: Results,
        output: Producer[bytes, bytes],
    ) -> bool:
        """Send the results; False if something was too large.

        Brokers refuse whole batches, so the next call sends the results of each record separately
        (`_is_careful`), to find the record at fault.
        """
        sent: list[Delivery] = []
        ends: dict[PartitionId, tuple[RawRecord, Held | None]] = {}
        """The first record of each partition to read again; `Held` if it was given back."""
        for raw in records:
            if (raw.topic, raw.partition) in ends:
                continue
            result = results.get(raw.id)
            if result is None or isinstance(result, Held):
                ends[raw.topic, raw.partition] = raw, result
                continue
            try:
                sent += [self._send(each, output) for each in result]
                refused = _too_large(output, sent) if self._is_careful else None
            except SendFailed as failed:
                if failed.code == KafkaError._STATE:  # noqa: SLF001 - librdkafka's name
                    break  # an earlier failure has broken the transaction
                if not failed.too_large:
                    raise
                refused = failed
            if refused is not None:
                self._too_large.setdefault(raw.id, []).append(refused)
                return False
        else:
            if _too_large(output, sent) is None:
                self._is_careful = False
                self._settle(records, ends)
                return True
        self._is_careful = True
        return False

    def _settle(
        self,
        records: list[RawRecord],
        ends: Mapping[PartitionId, tuple[RawRecord, Held | None]],
    ) -> None:
        for raw, held in ends.values():
            if held is None:
                self._transactions.give_back(raw)
                continue
            self._nacks[raw.id] = self._nacks.get(raw.id, 0) + 1
            self._transactions.hold(raw, held.delay_ms)
        for raw in records:
            first = ends.get((raw.topic, raw.partition))
            if first is None or raw.offset < first[0].offset:
                self._nacks.pop(raw.id, None)

    def _send(self, record: Outgoing[bytes, bytes], output: Producer[bytes, bytes]) -> Delivery:
        delivery = output.send(
            record.topic,
            record.value,
            key=record.key,
            headers=record.headers,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms,
        )
        if self._output_chain:
            delivery.when_done(partial(self._acknowledged, delivery))
        return delivery

    def _acknowledged(self, delivery: Delivery) -> None:
        report, failure = delivery.report, delivery.failure
        metadata = None if report is None or failure is not None else metadata_of(report)
        tell_acknowledged(self._output_chain, metadata, failure)

    def _result(self, raw: RawRecord, handler: RecordHandler) -> Result:
        found = self._before_handling(raw)
        if not isinstance(found, Record):
            return found
        try:
            return self._outgoing(handler(found))
        except BaseException as error:  # noqa: BLE001 - the user's handler, `sys.exit` too
            return self._failed(raw, error)

    async def _result_later(
        self, raw: RawRecord, handler: Callable[[Record[Any, Any]], Awaitable[object]]
    ) -> Result:
        found = self._before_handling(raw)
        if not isinstance(found, Record):
            return found
        try:
            return self._outgoing(await handler(found))
        except BaseException as error:  # noqa: BLE001 - also if what it awaits was cancelled
            return self._failed(raw, error)

    def _before_handling(self, raw: RawRecord) -> Record[Any, Any] | Result:
        """The record for the handler, or its result if the handler is not to be called."""
        refused = self._too_large.get(raw.id)
        if refused:
            return self._given_up(raw, refused[0], dead_letters_refused=len(refused) - 1)
        try:
            record = self._reader.read(raw.message)
        except Exception as error:  # noqa: BLE001 - the user's deserializer
            return self._given_up(raw, self._reader.failure(raw.message, error))
        passed = consumed_through(self._chain, [record]) if self._chain else [record]
        return passed[0] if passed else ()

    def _failed(self, raw: RawRecord, error: BaseException) -> Result:
        again_ms = self._policy.given_back_ms(error, self._nacks.get(raw.id, 0))
        return self._given_up(raw, error) if again_ms is None else Held(again_ms)

    def _given_up(
        self, raw: RawRecord, error: BaseException, dead_letters_refused: int = 0
    ) -> Sequence[Outgoing[bytes, bytes]]:
        policy = self._policy
        if not policy.dead_letters or dead_letters_refused > 1:
            raise HandlerFailed(raw.topic, raw.partition, raw.offset, error) from error
        make = policy.stub if dead_letters_refused else policy.dead_letter
        return [make(raw, error, 1)]

    def _outgoing(self, results: Any) -> Sequence[Outgoing[bytes, bytes]]:
        if results is None:
            return ()
        made = [results] if isinstance(results, Outgoing) else list(results)
        return [sent_through(self._output_chain, each) for each in made]


class _Commits(ConsumerInterceptor):
    """Passes on commits only: records go through the chain after they are deserialized."""

    def __init__(self, chain: Sequence[ConsumerInterceptor]) -> None:
        self._chain = chain

    def on_commit(self, offsets: Mapping[PartitionId, int], /) -> None:
        tell_committed(self._chain, offsets)


def _too_large(output: Producer[bytes, bytes], sent: list[Delivery]) -> SendFailed | None:
    output.client.flush()
    failures = (each.failure for each in sent)
    return next((each for each in failures if each is not None and each.too_large), None)
