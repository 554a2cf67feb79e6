"""Decides when a record of a delay or retry topic is due, or why it is a dead letter. No I/O.

Headers are untrusted input. Each value is bounded, and one that does not parse makes its record a
dead letter; it never holds up the records behind it.

A verdict depends only on the record and its position, so that reading the topic again gives the
same verdicts. There are two exceptions: timestamps in the future, and retries, which wait from when
they are read.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from penstock.config.delay_route import DELAY_MAX_MS, DelayBy, DelayRoute, RetryRoute, Route
from penstock.config.duration import LEAST_MS, MOST_MS
from penstock.errors import ConfigError
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
from penstock.record.record import Record
from penstock.retry.schedule import Schedule, next_ms, parse_schedule
from penstock.types import TopicPartition

DELIVER_AT: Final = "penstock-deliver-at"
DELAY_MS: Final = "penstock-delay-ms"
SCHEDULE: Final = "penstock-schedule"
SCHEDULE_START: Final = "penstock-schedule-start"
"""Epoch milliseconds at which `every` starts counting; written by the service."""
SCHEDULE_ORIGIN: Final = "penstock-schedule-origin"
"""Offset of the record with which a client made the schedule; written by the service."""
CANCEL: Final = "penstock-cancel"
"""Offset of a record in the same partition that should not be delivered."""
NEXT_AT: Final = "penstock-next-at"
MOST_SPELLED: Final = 500
"""Most characters of a schedule: parsing one as long as a record takes seconds; others wait."""

WHEN: Final = frozenset(
    {DELIVER_AT, DELAY_MS, SCHEDULE, SCHEDULE_START, SCHEDULE_ORIGIN, CANCEL, NEXT_AT}
)
"""Headers removed for the target: a consumer may pass on what it gets to a retry topic."""
ORIGIN: Final = frozenset({ORIGIN_TOPIC, ORIGIN_PARTITION, ORIGIN_OFFSET})


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """The record goes to its target at this time."""

    due_ms: int
    attempt: int | None = None
    """Number of a retry, from 1."""


@dataclass(frozen=True, slots=True)
class Recur:
    """The record goes to its target at this time, and again by the schedule, until its key is
    produced again.
    """

    due_ms: int
    schedule: Schedule
    start_ms: int
    origin: int
    """Offset of the record with which a client made the schedule: its own or an earlier one."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """The record is a command: do not deliver the record at this offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class Dead:
    """The record is a dead letter."""

    reason: str
    attempt: int | None = None


Verdict: TypeAlias = WaitUntil | Recur | Cancel | Dead


class _Invalid(Exception):
    """A header's value cannot be used; the message says why."""


def judge(record: Record, partition: TopicPartition, route: Route, now_ms: int) -> Verdict:
    """The verdict on a record that arrived at `now_ms`."""
    # A producer whose clock is ahead must not make records wait longer than they ask.
    since_ms = min(record.timestamp, now_ms) if record.timestamp >= 0 else now_ms
    try:
        cancelled = _last(record.headers, CANCEL)
        if cancelled is not None:
            return Cancel(_whole(CANCEL, cancelled, 0, record.offset - 1))
        if isinstance(route, RetryRoute):
            # A consumer may pass on the old record's timestamp, so the wait counts from the
            # arrival.
            return _judge_retry(record, partition, route, now_ms)
        return _judge_delay(record, route, since_ms, now_ms)
    except _Invalid as error:
        return Dead(str(error))


def _judge_retry(
    record: Record, partition: TopicPartition, route: RetryRoute, since_ms: int
) -> Verdict:
    text = _last(record.headers, ATTEMPT)
    attempt = 1 + (0 if text is None else _whole(ATTEMPT, text, 0, 1_000_000_000))
    if attempt > route.max_attempts:
        failed = read_dead_letter(record.headers)
        cause = f": {failed.error}" if failed and failed.error else ""
        return Dead(f"gave up after {_attempts(attempt - 1, route)}{cause}", attempt - 1)
    due_ms = _asked_ms(record, route, since_ms, since_ms)
    if due_ms is None:
        chance = _chance(partition, record.offset)
        due_ms = since_ms + route.backoff.delay_ms(attempt, chance)
    return WaitUntil(due_ms, attempt)


def _attempts(done: int, route: RetryRoute) -> str:
    """The number of attempts, and a limit that they exceed: it was lowered, or a header forged."""
    over = f", where {route.topic} allows {route.max_attempts}" * (done > route.max_attempts)
    return f"{done} attempt{'s' * (done != 1)}{over}"


def _judge_delay(record: Record, route: DelayRoute, since_ms: int, now_ms: int) -> Verdict:
    spelled = _last(record.headers, SCHEDULE)
    if spelled is not None:
        return _judge_schedule(record, spelled, route, since_ms)
    if route.by is DelayBy.TIMESTAMP:
        _check_ahead(f"the timestamp {record.timestamp}", record.timestamp, route, now_ms)
        return WaitUntil(max(record.timestamp, 0))
    due_ms = _asked_ms(record, route, since_ms, now_ms)
    if due_ms is None:
        due_ms = since_ms + (route.default_ms or 0)
    return WaitUntil(due_ms)


def _judge_schedule(record: Record, spelled: str, route: DelayRoute, since_ms: int) -> Verdict:
    if record.key is None:
        return Dead(f"{SCHEDULE} needs a key: by it a schedule is replaced or cancelled")
    if len(spelled) > MOST_SPELLED:
        return Dead(f"{SCHEDULE} {_shown(spelled)} is longer than {MOST_SPELLED} characters")
    start, origin = _last(record.headers, SCHEDULE_START), _last(record.headers, SCHEDULE_ORIGIN)
    try:
        schedule = parse_schedule(spelled)
        if start is None or origin is None:
            due_ms = next_ms(schedule, since_ms, since_ms)
            _check_ahead(f"{SCHEDULE} {_shown(spelled)}", due_ms, route, since_ms)
            return Recur(due_ms, schedule, since_ms, record.offset)
    except ConfigError as error:
        return Dead(f"{SCHEDULE}: {error}")
    return Recur(
        _whole(NEXT_AT, _last(record.headers, NEXT_AT) or "", 0, since_ms + route.most_ms),
        schedule,
        _whole(SCHEDULE_START, start, 0, since_ms + MOST_MS),
        _whole(SCHEDULE_ORIGIN, origin, 0, record.offset),
    )


def delivered_headers(
    record: Record, partition: TopicPartition, verdict: WaitUntil | Recur
) -> list[Header]:
    """The headers of the record in its target."""
    kept = without(record.headers, WHEN)
    if not isinstance(verdict, WaitUntil) or verdict.attempt is None:
        return kept
    names = {name for name, _ in kept}
    origin: list[Header] = [
        (ORIGIN_TOPIC, partition.topic.encode()),
        (ORIGIN_PARTITION, b"%d" % partition.partition),
        (ORIGIN_OFFSET, b"%d" % record.offset),
    ]
    return [
        *without(kept, frozenset({ATTEMPT})),
        *([] if names & ORIGIN else origin),
        (ATTEMPT, b"%d" % verdict.attempt),
        (NEXT_AT, b"%d" % verdict.due_ms),
    ]


def dead_headers(
    record: Record, partition: TopicPartition, route: Route, verdict: Dead
) -> list[Header]:
    """The headers of the record as a dead letter. A known origin is kept."""
    known = read_dead_letter([*record.headers, (ERROR, b"")])
    has_origin = known is not None and known.topic is not None
    letter = DeadLetter(
        error=verdict.reason,
        source="retry" if isinstance(route, RetryRoute) else "delay",
        attempt=verdict.attempt,
        topic=known.topic if known and has_origin else partition.topic,
        partition=known.partition if known and has_origin else partition.partition,
        offset=known.offset if known and has_origin else record.offset,
        group=known.group if known else None,
    )
    return dead_letter_headers(letter, without(record.headers, WHEN))


def recurring_headers(record: Record, verdict: Recur, now_ms: int) -> list[Header]:
    """The headers of the schedule's next record, in the delay topic itself.

    Raises `ConfigError` if the schedule has no more times.
    """
    due_ms = next_ms(verdict.schedule, verdict.start_ms, now_ms)
    return [
        *without(record.headers, WHEN - {SCHEDULE}),
        (SCHEDULE_START, b"%d" % verdict.start_ms),
        (SCHEDULE_ORIGIN, b"%d" % verdict.origin),
        (NEXT_AT, b"%d" % due_ms),
    ]


def _asked_ms(record: Record, route: Route, since_ms: int, now_ms: int) -> int | None:
    """The due time from the headers. An absolute time wins over a delay."""
    at = _last(record.headers, DELIVER_AT)
    if at is not None:
        due_ms = _time_ms(at)
        _check_ahead(f"{DELIVER_AT} {_shown(at)}", due_ms, route, now_ms)
        return due_ms
    delay = _last(record.headers, DELAY_MS)
    if delay is None:
        return None
    wait_ms = _whole(DELAY_MS, delay, 0, 10**15)
    _check_ahead(f"{DELAY_MS} {delay}", since_ms + wait_ms, route, since_ms)
    return since_ms + max(wait_ms, LEAST_MS)


def _check_ahead(what: str, due_ms: int, route: Route, since_ms: int) -> None:
    """A record that waits for years keeps all behind it on disk, so the topic sets a limit."""
    if due_ms > since_ms + route.most_ms:
        raise _Invalid(
            f"{what} is more ahead than {DELAY_MAX_MS} of {route.topic}: {route.most_ms}"
        )


def _time_ms(text: str) -> int:
    if text.isascii() and text.isdecimal():
        return _whole(DELIVER_AT, text, 0, 10**15)
    try:
        at = datetime.fromisoformat(text)
        return max(0, round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        raise _Invalid(
            f"{DELIVER_AT} {_shown(text)} is neither epoch milliseconds nor ISO 8601"
        ) from None


def _last(headers: Sequence[Header], name: str) -> str | None:
    """The last header of the name counts, as in Kafka's clients."""
    for each, value in reversed(headers):
        if each == name:
            try:
                return "" if value is None else value.decode().strip()
            except UnicodeDecodeError:
                raise _Invalid(f"{name} is not UTF-8 text") from None
    return None


def _whole(name: str, text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 19):
        raise _Invalid(f"{name} must be a whole number, not {_shown(text)}")
    if not low <= int(text) <= high:
        raise _Invalid(f"{name} must be from {low} to {high}, not {text}")
    return int(text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def _chance(partition: TopicPartition, offset: int) -> float:
    """A number that is the same for a record whenever its topic is read."""
    return zlib.crc32(f"{partition}-{offset}".encode()) / 2**32
