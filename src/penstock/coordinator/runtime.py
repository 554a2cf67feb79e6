"""Runs a coordinator: one shard for each partition of its internal topic that this broker leads.

An operation reads a shard's state and decides (`Outcome`). Its records are appended as one batch
and replayed into the state; its answers leave when the batch is committed. Start-up, fail-over
and live operation share `replay`. Groups and transactions are two instances of this.
"""

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from penstock.clock import Clock
from penstock.coordinator.loading import loading
from penstock.coordinator.outcome import Now, Outcome, Shard, Ticket
from penstock.coordinator.pending import PendingRecords
from penstock.coordinator.refusal import CoordinatorLoading, NotCoordinator, RecordTooLarge
from penstock.coordinator.storage import CoordinatorLog, RawRecord, RecordFormat
from penstock.errors import ErrorCode, KafkaError, ProtocolError
from penstock.loop import Handle, Loop

logger = logging.getLogger(__name__)

RETRY_MS = 500
EXPIRIES_A_TURN = 64
"""How much of what is due is decided before others get their turn of the loop."""

T = TypeVar("T")
Rec = TypeVar("Rec")
Soft = TypeVar("Soft")
S = TypeVar("S", bound=Shard[Any, Any])


class Led(Generic[S]):
    """A partition that this broker leads: its log, its state, and who waits for an answer."""

    def __init__(
        self,
        topic: str,
        partition: int,
        log: CoordinatorLog,
        shard: S,
        record_format: RecordFormat[Any],
    ) -> None:
        self._topic, self.partition, self.log = topic, partition, log
        self.shard, self._format = shard, record_format
        self.is_loaded = False
        self.unreadable_records = 0
        """Records that were skipped when the log was read."""
        self.pending = PendingRecords()
        self.ended: list[tuple[int, bool]] = []
        """Transactions that ended behind what is being loaded."""
        self.tickets: WeakSet[Ticket[Any]] = WeakSet()
        """Those that wait, or rest on what was appended, and that somebody holds: what was told,
        and clients that went away, drop out by themselves."""
        self.timer: Handle | None = None
        self.timer_ms: int | None = None

    def replay(self, raw: RawRecord) -> None:
        record = self._format.decode(raw)
        self.pending.passed(raw)
        if record is not None:
            self.shard.replay(record)

    def pend(self, producer_id: int, raw: RawRecord) -> None:
        record = self._format.decode(raw)
        if record is not None:
            self.shard.pended(record)
        self.pending.add(producer_id, raw)

    def skipped(self, offset: int, why: ProtocolError) -> None:
        self.unreadable_records += 1
        logger.error(
            "%s-%d: skipping the record at offset %d, which cannot be read: %s",
            self._topic,
            self.partition,
            offset,
            why,
        )

    def end(self, producer_id: int, *, committed: bool) -> None:
        for raw in self.pending.end(producer_id, committed=committed):
            record = self._format.decode(raw)
            if record is not None:
                self.shard.replay(record)


class Runtime(Generic[S, Rec]):
    """Belongs to the event loop. `told` hears of each ticket once it has its reply."""

    def __init__(
        self,
        name: str,
        make_shard: Callable[[Callable[[], Iterator[Rec]]], S],
        record_format: RecordFormat[Rec],
        *,
        loop: Loop,
        clock: Clock,
        told: Callable[[Hashable], object],
    ) -> None:
        self.name, self._make_shard, self._format = name, make_shard, record_format
        self._loop, self._clock, self._told = loop, clock, told
        self._led: dict[int, Led[S]] = {}
        self.changed: Callable[[int, S], object] = _nobody_cares
        """Hears of each shard that is loaded, and of each change of its state."""
        self.resigned: Callable[[int], object] = _nobody_minds
        """Hears of each partition that is led no more."""

    def lead(self, partition: int, log: CoordinatorLog) -> None:
        """Become the coordinator of what belongs to this partition, once its log is read."""
        self.resign(partition)
        shard = self._make_shard(lambda: self.pending(partition))
        led = self._led[partition] = Led(self.name, partition, log, shard, self._format)
        self._load(partition, led, loading(log, led))

    def _load(self, partition: int, led: Led[S], slices: Iterator[None]) -> None:
        if self._led.get(partition) is not led:
            return  # resigned meanwhile
        try:
            next(slices)
        except StopIteration:
            led.is_loaded = True
            for producer_id, committed in led.ended:
                led.end(producer_id, committed=committed)
            led.shard.loaded(self.now())
            self._arm(led)
            self.changed(partition, led.shard)
        except Exception:
            # Without its state a shard may not answer: it stays in loading, for all to see.
            logger.exception("%s-%d cannot be loaded", self.name, partition)
        else:
            self._loop.call_soon(lambda: self._load(partition, led, slices))

    def resign(self, partition: int) -> None:
        """Another broker leads, or the partition is gone: its state goes, its clients hear."""
        led = self._led.get(partition)
        if led is not None:
            if led.timer is not None:
                led.timer.cancel()
            # What was appended and not committed may be lost: another broker knows.
            unanswered = [each for each in led.tickets if self.reply(each) is None]
            del self._led[partition]
            for ticket in unanswered:
                self._fill(ticket, NotCoordinator(f"{self.name}-{partition} has moved"))
            self.resigned(partition)

    def now(self) -> Now:
        return Now(self._clock.now_ms(), self._clock.monotonic_ms())

    def run(
        self, partition: int, operation: Callable[[S, Now, Ticket[T]], Outcome[Any, Any]]
    ) -> Ticket[T]:
        """Carry an operation out; the ticket that it was given says when and what it answers."""
        ticket: Ticket[T] = Ticket(partition)
        try:
            led = self._loaded(partition)
            self._carry_out(led, operation(led.shard, self.now(), ticket))
        except KafkaError as error:
            ticket = Ticket(partition)
            ticket.reply = error
            return ticket
        if ticket.reply is None or ticket.offset > 0:
            led.tickets.add(ticket)
        return ticket

    def run_everywhere(
        self, what: str, operation: Callable[[S, Now, Ticket[Any]], Outcome[Any, Any]]
    ) -> None:
        """Carry an operation out on every shard, for nobody who could ask again.

        A shard that is being loaded, or whose log refuses, gets it later, while it is led here.
        """
        for led in list(self._led.values()):
            self._in_background(led, what, operation, None)

    def _in_background(
        self,
        led: Led[S],
        what: str,
        operation: Callable[[S, Now, Ticket[Any]], Outcome[Any, Any]],
        refused_before: ErrorCode | None,
    ) -> None:
        if self._led.get(led.partition) is not led:
            return  # resigned meanwhile
        refused = self.run(led.partition, operation).reply
        if not isinstance(refused, KafkaError):
            return
        if refused.code is not refused_before:
            logger.warning("%s-%d, %s: %s; trying again", self.name, led.partition, what, refused)
        self._loop.call_later(
            RETRY_MS / 1000, lambda: self._in_background(led, what, operation, refused.code)
        )

    def loaded_shards(self) -> list[S]:
        return [led.shard for led in self._led.values() if led.is_loaded]

    @property
    def unreadable_records(self) -> int:
        """Records of the partitions led here that had to be skipped."""
        return sum(led.unreadable_records for led in self._led.values())

    def end_transaction(self, partition: int, producer_id: int, *, committed: bool) -> None:
        """A marker of this producer is in the log: its records count from now on, or never."""
        led = self._led.get(partition)
        if led is None:
            return
        if not led.is_loaded:
            led.ended.append((producer_id, committed))
            return
        led.end(producer_id, committed=committed)
        self._arm(led)

    def pending(self, partition: int) -> Iterator[Rec]:
        """Records that wait for the end of their transaction."""
        for raw in self._loaded(partition).pending:
            record = self._format.decode(raw)
            if record is not None:
                yield record

    def when_committed(self, partition: int, then: Callable[[], object]) -> None:
        """Call once all that is decided by now cannot be lost any more."""
        led = self._loaded(partition)
        led.log.when_committed(led.log.end_offset, then)

    def shard(self, partition: int) -> S:
        return self._loaded(partition).shard

    def shards(self) -> list[S]:
        """Every shard that this broker leads; refused while one of them is loading."""
        return [self._loaded(partition).shard for partition in self._led]

    def reply(self, ticket: Ticket[T]) -> T | KafkaError | None:
        """The reply, once it is there and nothing that it rests on can be lost any more."""
        reply = ticket.reply
        if reply is None or isinstance(reply, KafkaError):
            return reply
        led = self._led.get(ticket.partition)
        return reply if led is None or led.log.is_committed(ticket.offset) else None

    def _loaded(self, partition: int) -> Led[S]:
        led = self._led.get(partition)
        if led is None:
            raise NotCoordinator(f"{self.name}-{partition} is not led here")
        if not led.is_loaded:
            raise CoordinatorLoading(f"{self.name}-{partition} is being loaded")
        return led

    def _carry_out(self, led: Led[S], outcome: Outcome[Any, Any]) -> None:
        offset = led.log.end_offset if outcome.reads else 0
        if outcome.records:
            raw = [self._format.encode(record) for record in outcome.records]
            try:
                offset = self._append(led, outcome, raw, outcome.records)
            except KafkaError:
                if outcome.may_split:  # some of it may be written
                    self.changed(led.partition, led.shard)
                raise
        if outcome.soft is not None:
            led.shard.keep(outcome.soft)
        for ticket, reply in outcome.answers:
            ticket.offset = offset
            self._fill(ticket, reply)
        self._arm(led)
        if outcome.records:
            self.changed(led.partition, led.shard)

    def _append(
        self,
        led: Led[S],
        outcome: Outcome[Any, Any],
        raw: Sequence[RawRecord],
        records: Sequence[Any],
    ) -> int:
        """Append and replay; the offset behind. Halves what is too large for one batch."""
        producer = outcome.producer
        try:
            offset = led.log.append(list(raw), self._clock.now_ms(), producer)
        except RecordTooLarge:
            if not outcome.may_split or len(raw) == 1:
                raise
            half = len(raw) // 2
            self._append(led, outcome, raw[:half], records[:half])
            return self._append(led, outcome, raw[half:], records[half:])
        for each, record in zip(raw, records, strict=True):
            if producer is not None:
                led.pend(producer.id, each)
            else:
                led.pending.passed(each)
                led.shard.replay(record)
        return offset

    def _fill(self, ticket: Ticket[Any], reply: object) -> None:
        ticket.reply = reply
        self._told(ticket)

    def _arm(self, led: Led[S]) -> None:
        """Have the loop call when the shard's next deadline passes, unless it will already."""
        deadline_ms = led.shard.next_deadline_ms()
        if deadline_ms is None or (led.timer_ms is not None and led.timer_ms <= deadline_ms):
            return
        self._arm_at(led, deadline_ms)

    def _arm_at(self, led: Led[S], deadline_ms: int) -> None:
        if led.timer is not None:
            led.timer.cancel()
        delay_ms = max(deadline_ms - self._clock.monotonic_ms(), 0)
        led.timer_ms = deadline_ms
        led.timer = self._loop.call_later(delay_ms / 1000, lambda: self._expire(led))

    def _expire(self, led: Led[S]) -> None:
        led.timer = led.timer_ms = None
        try:
            for _ in range(EXPIRIES_A_TURN):
                now, due_ms = self.now(), led.shard.next_deadline_ms()
                if due_ms is None or due_ms > now.steady_ms:
                    break
                self._carry_out(led, led.shard.expire(now))
        except KafkaError as error:
            # It cannot be written now. What is due stays due.
            logger.warning("%s-%d: %s", self.name, led.partition, error)
            self._arm_at(led, self._clock.monotonic_ms() + RETRY_MS)
        else:
            self._arm(led)


def _nobody_cares(partition: int, shard: object) -> None:
    """What `changed` is until somebody wants to hear."""


def _nobody_minds(partition: int) -> None:
    """What `resigned` is until then."""
