"""Runs a coordinator: one shard for each partition of its internal topic that this broker leads.

An operation reads a shard's state and decides (`CoordinatorResult`). The runtime appends its
records as one batch, replays them into the state, and sends the answers when the batch is
committed. Start-up, fail-over and live operation share `replay`. Groups and transactions are two
instances of this.
"""

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from struct import error as StructError  # noqa: N812  an exception of the standard library
from typing import Any, Generic, TypeVar

from penstock.clock import Clock
from penstock.coordinator.errors import (
    CoordinatorLoading,
    CoordinatorRecordTooLarge,
    NotCoordinator,
)
from penstock.coordinator.led_partition import LedPartition
from penstock.coordinator.loading import loading
from penstock.coordinator.result import CoordinatorResult, CoordinatorShard, Now, PendingReply
from penstock.coordinator.storage import CoordinatorLog, RawRecord, RecordFormat
from penstock.errors import ErrorCode, KafkaError
from penstock.loop import Loop

logger = logging.getLogger(__name__)

RETRY_MS = 500
EXPIRIES_A_TURN = 64
"""At most this many expiries are decided in one loop turn, so that requests are not starved."""

T = TypeVar("T")
Rec = TypeVar("Rec")
S = TypeVar("S", bound=CoordinatorShard[Any, Any])


class CoordinatorRuntime(Generic[S, Rec]):
    """Belongs to the event loop. `on_reply` is called with each pending reply once it has a value.

    `name` is that of the internal topic.
    """

    def __init__(
        self,
        name: str,
        make_shard: Callable[[Callable[[], tuple[Rec, ...]]], S],
        record_format: RecordFormat[Rec],
        *,
        loop: Loop,
        clock: Clock,
        on_reply: Callable[[Hashable], object],
    ) -> None:
        self.name, self._make_shard, self._format = name, make_shard, record_format
        self._loop, self._clock, self._on_reply = loop, clock, on_reply
        self._led: dict[int, LedPartition[S]] = {}
        self.on_change: Callable[[int, S], object] = _ignore_change
        """Called with each shard that has been loaded, and after each change of its state."""
        self.on_resign: Callable[[int], object] = _ignore_resignation
        """Called with each partition that this broker ceases to lead."""

    def lead(self, partition: int, log: CoordinatorLog) -> None:
        """Become the coordinator for this partition; it serves requests once its log is loaded."""
        self.resign(partition)
        shard = self._make_shard(lambda: self.pending_records(partition))
        led = self._led[partition] = LedPartition(self.name, partition, log, shard, self._format)
        self._load(partition, led, loading(log, led))

    def _load(self, partition: int, led: LedPartition[S], slices: Iterator[None]) -> None:
        if self._led.get(partition) is not led:
            return  # resigned meanwhile
        try:
            next(slices)
        except StopIteration:
            led.is_loaded = True
            for producer_id, committed in led.ended_while_loading:
                led.end_transaction(producer_id, committed=committed)
            led.shard.on_loaded(self.now())
            self._arm(led)
            self.on_change(partition, led.shard)
        except Exception:
            # A shard without its state must not answer. It stays in loading, where it is noticed.
            logger.exception("%s-%d cannot be loaded; it stays unavailable", self.name, partition)
        else:
            self._loop.call_soon(lambda: self._load(partition, led, slices))

    def resign(self, partition: int) -> None:
        """Drop the state of a partition that has moved or is gone, and fail its pending replies.

        Replies that rest on uncommitted records fail too: the next leader may not have these. A
        leader that goes on in a new leader epoch does not resign (`Partition.tenure`).
        """
        led = self._led.get(partition)
        if led is not None:
            if led.timer is not None:
                led.timer.cancel()
            unanswered = [each for each in led.pending_replies if self.reply(each) is None]
            del self._led[partition]
            for pending in unanswered:
                self._fill(pending, NotCoordinator(f"{self.name}-{partition} has moved"))
            self.on_resign(partition)

    def leads(self, partition: int) -> bool:
        """Whether operations run here, at once or after the partition is loaded."""
        return partition in self._led

    def now(self) -> Now:
        return Now(self._clock.now_ms(), self._clock.monotonic_ms())

    def run(
        self,
        partition: int,
        operation: Callable[[S, Now, PendingReply[T]], CoordinatorResult[Any, Any]],
    ) -> PendingReply[T]:
        """Run an operation; it answers the pending reply that it is given, now or later."""
        pending: PendingReply[T] = PendingReply(partition)
        try:
            led = self._loaded(partition)
            self._carry_out(led, operation(led.shard, self.now(), pending))
        except KafkaError as error:
            pending = PendingReply(partition)
            pending.reply = error
            return pending
        if pending.reply is None or pending.offset > 0:
            led.pending_replies.add(pending)
        return pending

    def run_everywhere(
        self,
        what: str,
        operation: Callable[[S, Now, PendingReply[Any]], CoordinatorResult[Any, Any]],
    ) -> None:
        """Run an operation on every shard, for the broker itself: no client would retry it.

        A shard that is loading, or whose log refuses the append, is retried while led here.
        """
        for led in list(self._led.values()):
            self._in_background(led, what, operation, None)

    def _in_background(
        self,
        led: LedPartition[S],
        what: str,
        operation: Callable[[S, Now, PendingReply[Any]], CoordinatorResult[Any, Any]],
        refused_before: ErrorCode | None,
    ) -> None:
        if self._led.get(led.partition) is not led:
            return  # resigned meanwhile
        refused = self.run(led.partition, operation).reply
        if not isinstance(refused, KafkaError):
            return
        if refused.code is not refused_before:
            logger.warning(
                "%s-%d: %s failed: %s; trying again", self.name, led.partition, what, refused
            )
        self._loop.call_later(
            RETRY_MS / 1000, lambda: self._in_background(led, what, operation, refused.code)
        )

    def rewrite(
        self,
        partition: int,
        everything: Callable[[S, Now, PendingReply[Any]], CoordinatorResult[Any, Any]],
    ) -> None:
        """Append records that hold the whole state; earlier ones go once these are committed."""
        led = self._loaded(partition)
        first = led.log.end_offset
        refused = self.run(partition, everything).reply
        if isinstance(refused, KafkaError):
            raise refused
        led.log.when_committed(led.log.end_offset, lambda: led.log.delete_before(first))

    def loaded(self) -> dict[int, S]:
        """The shards that serve requests, by partition."""
        return {led.partition: led.shard for led in self._led.values() if led.is_loaded}

    def loaded_shards(self) -> list[S]:
        return [led.shard for led in self._led.values() if led.is_loaded]

    @property
    def unreadable_records(self) -> int:
        """Records of the partitions led here that had to be skipped."""
        return sum(led.unreadable_records for led in self._led.values())

    def end_transaction(self, partition: int, producer_id: int, *, committed: bool) -> None:
        """A marker of this producer was appended: its records take effect, or are dropped."""
        led = self._led.get(partition)
        if led is None:
            return
        if not led.is_loaded:
            led.ended_while_loading.append((producer_id, committed))
            return
        led.end_transaction(producer_id, committed=committed)
        self._arm(led)

    def pending_records(self, partition: int) -> tuple[Rec, ...]:
        """The records of open transactions; the same tuple until that changes."""
        return self._loaded(partition).decoded_pending_records()

    def when_committed(self, partition: int, then: Callable[[], object]) -> None:
        """Call `then` once everything decided so far is committed."""
        led = self._loaded(partition)
        led.log.when_committed(led.log.end_offset, then)

    def shard(self, partition: int) -> S:
        return self._loaded(partition).shard

    def shards(self) -> list[S]:
        """Every shard that this broker leads; refused while one of them is loading."""
        return [self._loaded(partition).shard for partition in self._led]

    def reply(self, pending: PendingReply[T]) -> T | KafkaError | None:
        """The reply, once it has a value and all records that it rests on are committed."""
        reply = pending.reply
        if reply is None or isinstance(reply, KafkaError):
            return reply
        led = self._led.get(pending.partition)
        return reply if led is None or led.log.is_committed(pending.offset) else None

    def _loaded(self, partition: int) -> LedPartition[S]:
        led = self._led.get(partition)
        if led is None:
            raise NotCoordinator(f"{self.name}-{partition} is not led here")
        if not led.is_loaded:
            raise CoordinatorLoading(f"{self.name}-{partition} is being loaded")
        return led

    def _carry_out(self, led: LedPartition[S], result: CoordinatorResult[Any, Any]) -> None:
        offset = led.log.end_offset if result.reads_state else 0
        if result.records:
            try:
                raw = [self._format.encode(record) for record in result.records]
            except StructError:
                # A member id made of a client's longest name, for example.
                raise CoordinatorRecordTooLarge(f"a name is too long for {self.name}") from None
            try:
                offset = self._append(led, result, raw, result.records)
            except KafkaError:
                if result.may_split:  # some of the records may be written
                    self.on_change(led.partition, led.shard)
                raise
        if result.soft_state is not None:
            led.shard.apply_soft_state(result.soft_state)
        for pending, reply in result.answers:
            pending.offset = offset
            self._fill(pending, reply)
        self._arm(led)
        if result.records:
            self.on_change(led.partition, led.shard)

    def _append(
        self,
        led: LedPartition[S],
        result: CoordinatorResult[Any, Any],
        raw: Sequence[RawRecord],
        records: Sequence[Any],
    ) -> int:
        """Append and replay; returns the next offset. Halves what is too large for one batch."""
        producer = result.producer
        try:
            offset = led.log.append(list(raw), self._clock.now_ms(), producer)
        except CoordinatorRecordTooLarge:
            if not result.may_split or len(raw) == 1:
                raise
            half = len(raw) // 2
            self._append(led, result, raw[:half], records[:half])
            return self._append(led, result, raw[half:], records[half:])
        for each, record in zip(raw, records, strict=True):
            if producer is not None:
                led.replay_pending(producer.id, each)
            else:
                led.pending_records.supersede(each)
                led.shard.replay(record)
        return offset

    def _fill(self, pending: PendingReply[Any], reply: object) -> None:
        pending.reply = reply
        self._on_reply(pending)

    def _arm(self, led: LedPartition[S]) -> None:
        """Set the timer to the shard's next deadline, unless it fires by then anyway."""
        deadline_ms = led.shard.next_deadline_ms()
        if deadline_ms is None or (led.timer_ms is not None and led.timer_ms <= deadline_ms):
            return
        self._arm_at(led, deadline_ms)

    def _arm_at(self, led: LedPartition[S], deadline_ms: int) -> None:
        if led.timer is not None:
            led.timer.cancel()
        delay_ms = max(deadline_ms - self._clock.monotonic_ms(), 0)
        led.timer_ms = deadline_ms
        led.timer = self._loop.call_later(delay_ms / 1000, lambda: self._expire(led))

    def _expire(self, led: LedPartition[S]) -> None:
        led.timer = led.timer_ms = None
        try:
            for _ in range(EXPIRIES_A_TURN):
                now, due_ms = self.now(), led.shard.next_deadline_ms()
                if due_ms is None or due_ms > now.steady_ms:
                    break
                self._carry_out(led, led.shard.expire(now))
        except KafkaError as error:
            # The records cannot be written now. What is due stays due.
            logger.warning(
                "%s-%d: an expiry cannot be written: %s; trying again",
                self.name,
                led.partition,
                error,
            )
            self._arm_at(led, self._clock.monotonic_ms() + RETRY_MS)
        else:
            self._arm(led)


def _ignore_change(partition: int, shard: object) -> None:
    """The default of `on_change`."""


def _ignore_resignation(partition: int) -> None:
    """The default of `on_resign`."""
