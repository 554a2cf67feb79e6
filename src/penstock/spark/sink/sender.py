"""Decides what the sink sends next, and retries batches that were not written. No I/O.

Batches of a partition never overtake each other. When a batch has to be retried, sending stops:
first all responses in flight are received, then the remaining batches are sent again in rounds of
one batch per partition. New batches follow only when all of these are written.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from penstock.errors import KafkaError
from penstock.spark.sink.accumulator import SealedBatch
from penstock.spark.sink.delivery import WRITTEN, BatchResponse, firsts, unwritten
from penstock.types import BrokerId, TopicPartition

REQUEST_BYTES: Final = 4 * 1024 * 1024
IN_FLIGHT: Final = 5
"""Requests in flight per broker: it knows the last five batches of an idempotent producer."""


class DeliveryTimedOut(KafkaError):
    """Rows were not acknowledged within kafka.delivery.timeout.ms; they may be written or not.

    Its error code is not retriable, so that it ends all retries.
    """


@dataclass(frozen=True, slots=True)
class FindLeaders:
    """Find the leaders of these partitions, then call `leaders_found` or `failed`."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class SendBatches:
    """Send these batches, of different partitions, then call `sent` or `failed`."""

    leader: BrokerId
    batches: tuple[SealedBatch, ...]


@dataclass(frozen=True, slots=True)
class ReceiveResponse:
    """Wait for the response to the oldest request, then call `received`."""


@dataclass(frozen=True, slots=True)
class BackOff:
    """Forget the leaders, wait as after this many failures, then call `backed_off`."""

    failures: int


SenderStep: TypeAlias = FindLeaders | SendBatches | ReceiveResponse | BackOff


@dataclass(slots=True)
class _Recovery:
    """Batches that must be written before anything else is sent."""

    deadline_ms: float
    left: dict[int, SealedBatch] = field(default_factory=dict)
    """Batches by `id`, both waiting and in flight."""
    responses: list[BatchResponse] = field(default_factory=list)
    """Responses since the last round began, in the order of sending."""
    reasons: dict[TopicPartition, str | None] = field(default_factory=dict)
    failures: int = 0
    size: int = 0
    """How many were left when the last round began."""
    is_open: bool = True
    """Whether the responses of a round are not evaluated yet. The first round receives what was in
    flight.
    """
    is_paused: bool = False


class Sender:
    """Call `step` and do what it returns until it returns None; report the result of each step."""

    def __init__(self, delivery_timeout_ms: int) -> None:
        self._timeout_ms = delivery_timeout_ms
        self._waiting: list[SealedBatch] = []
        self._to_route: list[SealedBatch] = []
        """The batches of the last `FindLeaders`; they stay in `_waiting` meanwhile."""
        self._ready: deque[SendBatches] = deque()
        self._in_flight: deque[SendBatches] = deque()
        self._recovery: _Recovery | None = None

    def add(self, batches: Iterable[SealedBatch]) -> None:
        self._waiting += batches

    def step(self, now_ms: float, *, finish: bool = False) -> SenderStep | None:
        """The next step; None when all is sent or, with `finish`, when all is written.

        Raises `NotWritten` and `DeliveryTimedOut`.
        """
        if self._recovery is not None:
            found = self._recovering(self._recovery, now_ms)
            if found is not None:
                return found
            self._recovery = None
        if self._ready:
            leader = self._ready[0].leader
            busy = sum(each.leader == leader for each in self._in_flight) >= IN_FLIGHT
            return ReceiveResponse() if busy else self._ready[0]
        if self._waiting:
            return self._route(self._waiting)
        return ReceiveResponse() if finish and self._in_flight else None

    def leaders_found(self, leaders: Mapping[BrokerId, Sequence[TopicPartition]]) -> None:
        """The leaders of the partitions of `FindLeaders`."""
        taken = {id(batch) for batch in self._to_route}
        self._waiting = [each for each in self._waiting if id(each) not in taken]
        for leader, partitions in leaders.items():
            led = set(partitions)
            of_leader = [batch for batch in self._to_route if batch.topic_partition in led]
            self._ready += [SendBatches(leader, tuple(each)) for each in requests(of_leader)]
        self._begun()

    def sent(self) -> None:
        """The first request that was ready is in flight."""
        self._in_flight.append(self._ready.popleft())

    def received(self, responses: Sequence[BatchResponse], now_ms: float) -> None:
        """The responses to the batches of the oldest request, also if its connection broke."""
        self._in_flight.popleft()
        if self._recovery is None and all(each.code in WRITTEN for each in responses):
            return
        recovery = self._recovery or self._stopped(now_ms)
        recovery.responses += responses
        recovery.reasons |= {
            each.batch.topic_partition: each.message
            for each in responses
            if each.code not in WRITTEN
        }

    def failed(self, why: str, now_ms: float) -> None:
        """The step failed: a partition has no leader, or a connection broke."""
        if self._ready:
            batches = self._ready.popleft().batches
            self._waiting = [*batches, *self._waiting]
        else:
            batches = tuple(self._to_route)
        recovery = self._recovery or self._stopped(now_ms)
        recovery.left |= {id(batch): batch for batch in batches}
        recovery.reasons |= {batch.topic_partition: why for batch in batches}
        self._begun()

    def backed_off(self) -> None:
        assert self._recovery is not None, "only a recovery pauses"
        self._recovery.is_paused = True

    def _begun(self) -> None:
        """A round of the recovery, if there is one, has begun."""
        if self._recovery is not None:
            self._recovery.is_open, self._recovery.is_paused = True, False

    def _stopped(self, now_ms: float) -> _Recovery:
        """Stop sending: requests that are ready go back to the front of `_waiting`."""
        ready = [batch for each in self._ready for batch in each.batches]
        self._waiting, self._ready = [*ready, *self._waiting], deque()
        self._recovery = _Recovery(now_ms + self._timeout_ms)
        return self._recovery

    def _recovering(self, recovery: _Recovery, now_ms: float) -> SenderStep | None:
        """The next step of a recovery; None when all its batches are written."""
        if self._ready:
            return self._ready[0]
        if self._in_flight:
            return ReceiveResponse()
        if recovery.is_open:
            self._evaluate(recovery)
        if not recovery.left:
            return None
        if now_ms > recovery.deadline_ms:
            raise self._timed_out(recovery)
        if recovery.failures and not recovery.is_paused:
            return BackOff(recovery.failures)
        return self._route(list(recovery.left.values()))

    def _evaluate(self, recovery: _Recovery) -> None:
        """Find what is still unwritten after a round; it goes to the front of `_waiting`."""
        again = unwritten(recovery.responses)
        self._waiting = [*again, *self._waiting]
        left = recovery.left.keys() | {id(batch) for batch in again}
        recovery.left = {id(batch): batch for batch in self._waiting if id(batch) in left}
        progressed = len(recovery.left) < recovery.size
        recovery.failures = 0 if progressed else recovery.failures + 1
        recovery.responses, recovery.size, recovery.is_open = [], len(recovery.left), False

    def _timed_out(self, recovery: _Recovery) -> DeliveryTimedOut:
        tp = next(iter(recovery.left.values())).topic_partition
        why = recovery.reasons.get(tp)
        return DeliveryTimedOut(
            f"rows to {tp} were not written within kafka.delivery.timeout.ms = "
            f"{self._timeout_ms}" + (f" ({why})" if why else "")
        )

    def _route(self, batches: Sequence[SealedBatch]) -> FindLeaders:
        self._to_route = firsts(batches)
        return FindLeaders(tuple(batch.topic_partition for batch in self._to_route))


def requests(batches: Sequence[SealedBatch]) -> Iterator[list[SealedBatch]]:
    """Divide batches of different partitions into requests of about `REQUEST_BYTES`."""
    held: list[SealedBatch] = []
    size_bytes = 0
    for batch in batches:
        if held and size_bytes + len(batch.data) > REQUEST_BYTES:
            yield held
            held, size_bytes = [], 0
        held.append(batch)
        size_bytes += len(batch.data)
    if held:
        yield held
