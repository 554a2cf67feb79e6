"""Decides what happens to a record whose handler failed. Pure.

Retries go through a retry topic of the delay service (docs/delay.md), so that a failed record holds
up no other and its attempts survive restarts. With `in_place` they stay in the consumer, and the
records behind it in its lane wait. A record without retries left becomes a dead letter.

The topics of a handler for `orders` in the group `billing`:

    orders.billing.retry   where failed records go: the delay service brings them back from there
    orders.billing.again   where they come back: only this group reads them
    orders.billing.dlq     dead letters

`nack(delay)` is not a failure: the record comes again after `delay`, by the same route, whatever
the back-off says and even without one. It uses up no attempt, but works only `NACKS` times per
record, because a record that is never accepted would circulate forever.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, NoReturn

from penstock.config.backoff import Backoff as DelaySchedule
from penstock.config.backoff import ExponentialBackoff, parse_backoff
from penstock.config.delay_route import DLQ_TOPIC, RETRY_BACKOFF, RETRY_MAX_ATTEMPTS, RETRY_TO
from penstock.config.duration import parse_duration_ms
from penstock.record.dead_letter import (
    ATTEMPT,
    ERROR,
    ORIGIN_OFFSET,
    ORIGIN_PARTITION,
    ORIGIN_TOPIC,
    DeadLetter,
    Header,
    dead_letter_headers,
    read_dead_letter,
    without,
)
from penstock.sdk.errors import DeserializationFailed, RecordTooLarge, SendFailed
from penstock.sdk.record import Outgoing, Record

DELAY_MS: Final = "penstock-delay-ms"
GIVEN_BACK: Final = "penstock-nacks"
"""`<nacks>:<failures>` of a record in the retry topic; its service counts both as attempts."""
SOURCE: Final = "sdk"
MOST_ERROR: Final = 1_000
NACKS: Final = 100
"""How often a record may be given back; each further nack counts as a failure."""
NACK_MS: Final = 1_000
"""The delay of a nack that names none, for a handler without a back-off."""


class Nack(Exception):
    """Raised by `nack`: the record should come again after `delay_ms`."""

    def __init__(self, delay_ms: int | None, reason: str) -> None:
        super().__init__(reason or "not acknowledged")
        self.delay_ms = delay_ms

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Lets a worker process send it to its parent."""
        return Nack, (self.delay_ms, str(self))


class Tries(NamedTuple):
    """Attempts and nacks of a record so far, in the consumer that has it."""

    attempt: int = 1
    """Counts from 1; each failure adds one."""
    nacks: int = 0

    def after(self, *, is_nack: bool) -> "Tries":
        if is_nack:
            return Tries(self.attempt, self.nacks + 1)
        return Tries(self.attempt + 1, self.nacks)


def nack(delay: str | None = None, *, reason: str = "") -> NoReturn:
    """Inside a handler: give the record back; it comes again after `delay`, such as 30s.

    Without a delay it counts as a failure if the handler has retries; otherwise the record comes
    again after a second.
    """
    raise Nack(None if delay is None else parse_duration_ms(delay), reason)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays before each further attempt: `1s,10s,1m`, or `exponential(1s,2,10m,jitter=0.2)`."""

    delays: str
    attempts: int | None = None
    """Number of further attempts; default: the number of delays, or 4 if exponential."""
    in_place: bool = False
    schedule: DelaySchedule = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedule", parse_backoff(self.delays))

    @property
    def most(self) -> int:
        if self.attempts is not None:
            return self.attempts
        return 4 if isinstance(self.schedule, ExponentialBackoff) else len(self.schedule.delays_ms)


@dataclass(frozen=True, slots=True)
class FailureTopics:
    """The names of a handler's topics."""

    retry: str
    again: str
    dead_letters: str

    def retry_settings(self, backoff: Backoff) -> dict[str, str]:
        """Settings of the retry topic, for the delay service."""
        return {
            RETRY_TO: self.again,
            RETRY_BACKOFF: backoff.delays,
            RETRY_MAX_ATTEMPTS: str(backoff.most),
            DLQ_TOPIC: self.dead_letters,
        }


def failure_topics(topic: str, group: str) -> FailureTopics:
    stem = f"{topic}.{group}"
    return FailureTopics(f"{stem}.retry", f"{stem}.again", f"{stem}.dlq")


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Retry in place after a delay."""

    delay_ms: int
    is_nack: bool = False


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """The retry and dead-letter options of a handler."""

    topics: FailureTopics
    group: str
    retry: Backoff | None = None
    dead_letters: bool = False
    nacks: int = NACKS

    def decide(
        self, record: Record[bytes, bytes], error: BaseException, tries: Tries, chance: float
    ) -> Outgoing[bytes, bytes] | RetryLater | None:
        """The record to write elsewhere, or a delay before a retry in place; None: neither retries
        nor dead letters take the record.
        """
        asked_ms = error.delay_ms if isinstance(error, Nack) else None
        by_topic = self.retry is not None and not self.retry.in_place
        before = _before(record) if by_topic else Tries(tries.attempt - 1, tries.nacks)
        again_ms = self.given_back_ms(error, before.nacks)
        if again_ms is not None and by_topic:
            return self._to_retry(record, error, again_ms, before, is_nack=True)
        if again_ms is not None:
            return RetryLater(again_ms, is_nack=True)
        if self.retry is not None and not _fails_always(error):
            if by_topic:
                return self._to_retry(record, error, asked_ms, before, is_nack=False)
            if tries.attempt <= self.retry.most:
                steady_ms = self.retry.schedule.delay_ms(tries.attempt, chance)
                return RetryLater(steady_ms if asked_ms is None else asked_ms)
        if self.dead_letters:
            return self.dead_letter(record, error, tries.attempt)
        return None

    def given_back_ms(self, error: BaseException, nacks: int) -> int | None:
        """The delay of a record with this many nacks before; None: it counts as failed."""
        if not isinstance(error, Nack) or nacks >= self.nacks:
            return None
        if error.delay_ms is None and self.retry is None:
            return NACK_MS
        return error.delay_ms

    def _to_retry(
        self,
        record: Record[bytes, bytes],
        error: BaseException,
        asked_ms: int | None,
        before: Tries,
        *,
        is_nack: bool,
    ) -> Outgoing[bytes, bytes]:
        """The record for the retry topic, with its headers; the delay service counts attempts by
        `penstock-attempt`.

        The service adds one for each record that it reads, so a nacked record is written with one
        attempt less. A record that never failed still comes back as attempt 1; only our own header
        says that nothing failed.
        """
        ours = frozenset({ERROR, DELAY_MS, ATTEMPT, GIVEN_BACK})
        headers: list[Header] = without(record.headers, ours)
        headers.append((ERROR, _text(error)))
        counted = before.attempt - 1 if is_nack else before.attempt
        if counted > 0:
            headers.append((ATTEMPT, b"%d" % counted))
        if is_nack or before.nacks:
            after = before.after(is_nack=is_nack)
            headers.append((GIVEN_BACK, b"%d:%d" % (after.nacks, after.attempt)))
        if record.header(ORIGIN_TOPIC) is None:
            headers += [
                (ORIGIN_TOPIC, record.topic.encode()),
                (ORIGIN_PARTITION, str(record.partition).encode()),
                (ORIGIN_OFFSET, str(record.offset).encode()),
            ]
        if asked_ms is not None:
            headers.append((DELAY_MS, str(asked_ms).encode()))
        return Outgoing(self.topics.retry, record.value, record.key, headers)

    def dead_letter(
        self, record: Record[bytes, bytes], error: BaseException, attempt: int
    ) -> Outgoing[bytes, bytes]:
        return Outgoing(
            self.topics.dead_letters,
            record.value,
            record.key,
            self._headers(record, error, attempt),
        )

    def stub(
        self, record: Record[bytes, bytes], error: BaseException, attempt: int
    ) -> Outgoing[bytes, bytes]:
        """A dead letter for a record too large for the topic: headers say where the record is."""
        return Outgoing(self.topics.dead_letters, None, None, self._headers(record, error, attempt))

    def _headers(
        self, record: Record[bytes, bytes], error: BaseException, attempt: int
    ) -> Sequence[Header]:
        before = read_dead_letter([*record.headers, (ERROR, b"")])
        former = before if before is not None and before.topic is not None else None
        letter = DeadLetter(
            error=_text(error).decode(errors="replace"),
            source=SOURCE,
            attempt=_before(record).attempt + attempt,
            topic=record.topic if former is None else former.topic,
            partition=record.partition if former is None else former.partition,
            offset=record.offset if former is None else former.offset,
            group=self.group,
        )
        return dead_letter_headers(letter, without(record.headers, frozenset({GIVEN_BACK})))


def _before(record: Record[bytes, bytes]) -> Tries:
    """Failures and nacks from earlier rounds through the retry topic; headers are untrusted input.

    Both are 0 without an attempt header, as in a record that was redriven from the dead letters.
    """
    attempt = _number(record.header(ATTEMPT))
    if attempt is None:
        return Tries(0, 0)
    nacks, _, failures = (record.header(GIVEN_BACK) or b"").partition(b":")
    if (given := _number(nacks)) is None or (failed := _number(failures)) is None:
        return Tries(attempt, 0)
    return Tries(failed, given)


def _number(text: bytes | None) -> int | None:
    return int(text) if text and text.isdigit() and len(text) < 10 else None


def _fails_always(error: BaseException) -> bool:
    """Whether a retry would fail in the same way."""
    if isinstance(error, SendFailed):
        return error.too_large
    return isinstance(error, DeserializationFailed | RecordTooLarge)


def _text(error: BaseException) -> bytes:
    return f"{type(error).__name__}: {error}"[:MOST_ERROR].encode(errors="replace")
