"""What the sink sends next, and what becomes of batches that were not written. No I/O.

Batches of a partition never pass each other. An answer that puts a batch off stops the line: the
answers to all that was sent are heard first, then what is left goes again in rounds of one batch a
partition, and only when all of it is written do new batches follow.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from penstock.errors import KafkaError
from penstock.spark.sink.batching import Sealed
from penstock.spark.sink.delivery import WRITTEN, Answered, firsts, unwritten
from penstock.types import BrokerId, TopicPartition

REQUEST_BYTES: Final = 4 * 1024 * 1024
IN_FLIGHT: Final = 5
"""Requests to one broker: it knows the last five batches of an idempotent producer."""


class DeliveryTimedOut(KafkaError):
    """Rows that were not written within kafka.delivery.timeout.ms; they may be written or not.

    Its code is none of those that are retried: it ends the retries.
    """


@dataclass(frozen=True, slots=True)
class Route:
    """Find the leaders of these partitions, then call `routed` or `put_off`."""

    places: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Send:
    """Send these batches, of different partitions, then call `sent` or `put_off`."""

    leader: BrokerId
    batches: tuple[Sealed, ...]


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for the answer to the oldest request, then call `heard`."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Forget who leads and wait as after this many failures, then call `paused`."""

    failures: int


Step: TypeAlias = Route | Send | Receive | Pause


@dataclass(slots=True)
class _Recovery:
    """Batches that have to be written before anything else is sent."""

    deadline_ms: float
    left: dict[int, Sealed] = field(default_factory=dict)
    """By identity: those that wait, and those on their way."""
    answers: list[Answered] = field(default_factory=list)
    """What was said since the last round began, in the order of sending."""
    reasons: dict[TopicPartition, str | None] = field(default_factory=dict)
    failures: int = 0
    size: int = 0
    """How many were left when the last round began."""
    is_open: bool = True
    """Of a round: its answers are not judged yet. The first one hears out what was on its way."""
    is_paused: bool = False


class Sending:
    """Call `step` and do what it says until it says nothing; report what came of each step."""

    def __init__(self, delivery_timeout_ms: int) -> None:
        self._timeout_ms = delivery_timeout_ms
        self._waiting: list[Sealed] = []
        self._to_route: list[Sealed] = []
        """The batches that the last `Route` was for; they wait meanwhile."""
        self._ready: deque[Send] = deque()
        self._in_flight: deque[Send] = deque()
        self._recovery: _Recovery | None = None

    def add(self, batches: Iterable[Sealed]) -> None:
        self._waiting += batches

    def step(self, now_ms: float, *, finish: bool = False) -> Step | None:
        """What to do now; None when all is sent or, to `finish`, when all is written.

        Raises `NotWritten` for a refusal and `DeliveryTimedOut`.
        """
        if self._recovery is not None:
            found = self._recovering(self._recovery, now_ms)
            if found is not None:
                return found
            self._recovery = None
        if self._ready:
            leader = self._ready[0].leader
            busy = sum(each.leader == leader for each in self._in_flight) >= IN_FLIGHT
            return Receive() if busy else self._ready[0]
        if self._waiting:
            return self._route(self._waiting)
        return Receive() if finish and self._in_flight else None

    def routed(self, leaders: Mapping[BrokerId, Sequence[TopicPartition]]) -> None:
        """Who leads the partitions of `Route`."""
        taken = {id(batch) for batch in self._to_route}
        self._waiting = [each for each in self._waiting if id(each) not in taken]
        for leader, places in leaders.items():
            led = set(places)
            of_leader = [batch for batch in self._to_route if batch.place in led]
            self._ready += [Send(leader, tuple(each)) for each in requests(of_leader)]
        self._begun()

    def sent(self) -> None:
        """The first request that was ready is on its way."""
        self._in_flight.append(self._ready.popleft())

    def heard(self, answers: Sequence[Answered], now_ms: float) -> None:
        """What was said of the batches of the oldest request; also that its connection broke."""
        self._in_flight.popleft()
        if self._recovery is None and all(each.code in WRITTEN for each in answers):
            return
        recovery = self._recovery or self._stopped(now_ms)
        recovery.answers += answers
        recovery.reasons |= {
            each.batch.place: each.words for each in answers if each.code not in WRITTEN
        }

    def put_off(self, why: str, now_ms: float) -> None:
        """The step could not be done: nobody is known to lead, or a connection broke."""
        if self._ready:
            batches = self._ready.popleft().batches
            self._waiting = [*batches, *self._waiting]
        else:
            batches = tuple(self._to_route)
        recovery = self._recovery or self._stopped(now_ms)
        recovery.left |= {id(batch): batch for batch in batches}
        recovery.reasons |= {batch.place: why for batch in batches}
        self._begun()

    def paused(self) -> None:
        assert self._recovery is not None, "only a recovery pauses"
        self._recovery.is_paused = True

    def _begun(self) -> None:
        """A round of a recovery, if there is one, has begun."""
        if self._recovery is not None:
            self._recovery.is_open, self._recovery.is_paused = True, False

    def _stopped(self, now_ms: float) -> _Recovery:
        """The line stops: what is ready waits again, before what comes behind it."""
        ready = [batch for each in self._ready for batch in each.batches]
        self._waiting, self._ready = [*ready, *self._waiting], deque()
        self._recovery = _Recovery(now_ms + self._timeout_ms)
        return self._recovery

    def _recovering(self, recovery: _Recovery, now_ms: float) -> Step | None:
        """The next step of a recovery; None when nothing is left to be written."""
        if self._ready:
            return self._ready[0]
        if self._in_flight:
            return Receive()
        if recovery.is_open:
            self._judge(recovery)
        if not recovery.left:
            return None
        if now_ms > recovery.deadline_ms:
            raise self._late(recovery)
        if recovery.failures and not recovery.is_paused:
            return Pause(recovery.failures)
        return self._route(list(recovery.left.values()))

    def _judge(self, recovery: _Recovery) -> None:
        """What the round's answers leave to be written, before anything else that waits."""
        again = unwritten(recovery.answers)
        self._waiting = [*again, *self._waiting]
        left = recovery.left.keys() | {id(batch) for batch in again}
        recovery.left = {id(batch): batch for batch in self._waiting if id(batch) in left}
        progressed = len(recovery.left) < recovery.size
        recovery.failures = 0 if progressed else recovery.failures + 1
        recovery.answers, recovery.size, recovery.is_open = [], len(recovery.left), False

    def _late(self, recovery: _Recovery) -> DeliveryTimedOut:
        place = next(iter(recovery.left.values())).place
        why = recovery.reasons.get(place)
        return DeliveryTimedOut(
            f"rows to {place} were not written within kafka.delivery.timeout.ms = "
            f"{self._timeout_ms}" + (f" ({why})" if why else "")
        )

    def _route(self, batches: Sequence[Sealed]) -> Route:
        self._to_route = firsts(batches)
        return Route(tuple(batch.place for batch in self._to_route))


def requests(batches: Sequence[Sealed]) -> Iterator[list[Sealed]]:
    """Batches of different partitions, as many as a request should hold."""
    held: list[Sealed] = []
    size_bytes = 0
    for batch in batches:
        if held and size_bytes + len(batch.data) > REQUEST_BYTES:
            yield held
            held, size_bytes = [], 0
        held.append(batch)
        size_bytes += len(batch.data)
    if held:
        yield held
