"""Routes: which topics delay or retry records, and where those go, from topic settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from penstock.config.backoff import Backoff, StepBackoff, parse_backoff
from penstock.config.duration import DAY_MS, LEAST_MS, MOST_MS
from penstock.errors import ConfigError

DELAY_TO: Final = "penstock.delay.to"
DELAY_MS: Final = "penstock.delay.ms"
DELAY_BY: Final = "penstock.delay.by"
DELAY_MAX_MS: Final = "penstock.delay.max.ms"
RETRY_TO: Final = "penstock.retry.to"
RETRY_BACKOFF: Final = "penstock.retry.backoff"
RETRY_MAX_ATTEMPTS: Final = "penstock.retry.max.attempts"
DLQ_TOPIC: Final = "penstock.dlq.topic"

ROUTE_SETTINGS: Final = (
    DELAY_TO,
    DELAY_MS,
    DELAY_BY,
    DELAY_MAX_MS,
    RETRY_TO,
    RETRY_BACKOFF,
    RETRY_MAX_ATTEMPTS,
    DLQ_TOPIC,
)

DEFAULT_BACKOFF: Final = "1s,10s,1m,10m"
DEFAULT_ATTEMPTS: Final = 4
"""The attempts for an exponential back-off, which does not imply a number."""
MOST_ATTEMPTS: Final = 10_000
RETRY_MOST_MS: Final = DAY_MS
"""The longest wait that a retry may request, unless the back-off or the topic's setting is longer:
a waiting record keeps all later ones on disk.
"""

RESERVED: Final = "__"
"""The prefix of internal topics: the service may write to them, but never records of clients."""
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")


class DelayBy(Enum):
    """Where the due time of a record comes from."""

    HEADER = "header"
    TIMESTAMP = "timestamp"
    """The record's timestamp, for clients that cannot set headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayRoute:
    """A topic whose records go to another topic when they are due."""

    topic: str
    to: str
    default_ms: int | None
    """The wait of records without a due time; None: they are delivered at once."""
    by: DelayBy
    most_ms: int
    """The longest wait that a record may request in its headers."""
    dead_letters: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRoute:
    """A topic whose records return to another topic after a back-off, a limited number of times."""

    topic: str
    to: str
    backoff: Backoff
    max_attempts: int
    most_ms: int
    """The longest wait that a record may request in its headers."""
    dead_letters: str


Route: TypeAlias = DelayRoute | RetryRoute


def default_dead_letters(topic: str) -> str:
    """The topic of dead letters without a setting."""
    return f"{topic}.dlq"


def route_of(topic: str, settings: Mapping[str, str]) -> Route | None:
    """The topic's route from its settings, or None; empty settings count as absent. Errors
    name the setting.
    """
    given = {name: text for name, text in settings.items() if text}
    if DELAY_TO in given and RETRY_TO in given:
        raise ConfigError(f"{DELAY_TO} and {RETRY_TO} exclude each other")
    to = given.get(DELAY_TO) or given.get(RETRY_TO)
    if to is None:
        return None
    if topic.startswith(RESERVED):  # its records would be moved, then deleted
        raise ConfigError(f"{topic} is a topic of brokers and services: it cannot delay or retry")
    dead_letters = given.get(DLQ_TOPIC, default_dead_letters(topic))
    if DLQ_TOPIC not in given and not _TOPIC.fullmatch(dead_letters):
        raise ConfigError(f"{DLQ_TOPIC} must be set: {topic!r} with .dlq is not a valid topic name")
    for name, target in (
        (DELAY_TO if DELAY_TO in given else RETRY_TO, to),
        (DLQ_TOPIC, dead_letters),
    ):
        if target == topic:
            raise ConfigError(f"{name} names the topic itself")
        if name in given and not _TOPIC.fullmatch(target):
            raise ConfigError(f"{name}: {target!r} is not a valid topic name")
        if name in given and target.startswith(RESERVED):
            raise ConfigError(f"{name}: {target!r} is a topic of brokers and services")
    if DELAY_TO in given:
        default_ms = (
            _whole(DELAY_MS, given[DELAY_MS], LEAST_MS, MOST_MS) if DELAY_MS in given else None
        )
        return DelayRoute(
            topic=topic,
            to=to,
            default_ms=default_ms,
            most_ms=_most_ms(given, MOST_MS, DELAY_MS, default_ms or 0),
            by=_delay_by(given.get(DELAY_BY, DelayBy.HEADER.value)),
            dead_letters=dead_letters,
        )
    backoff = _backoff(given.get(RETRY_BACKOFF, DEFAULT_BACKOFF))
    attempts = len(backoff.delays_ms) if isinstance(backoff, StepBackoff) else DEFAULT_ATTEMPTS
    return RetryRoute(
        topic=topic,
        to=to,
        backoff=backoff,
        max_attempts=_whole(
            RETRY_MAX_ATTEMPTS, given.get(RETRY_MAX_ATTEMPTS, str(attempts)), 1, MOST_ATTEMPTS
        ),
        most_ms=_most_ms(
            given, max(backoff.longest_ms, RETRY_MOST_MS), RETRY_BACKOFF, backoff.longest_ms
        ),
        dead_letters=dead_letters,
    )


def _most_ms(given: Mapping[str, str], default_ms: int, name: str, own_ms: int) -> int:
    """The longest wait that a record may request; the topic's own waits must not exceed it."""
    if DELAY_MAX_MS not in given:
        return default_ms
    most_ms = _whole(DELAY_MAX_MS, given[DELAY_MAX_MS], LEAST_MS, MOST_MS)
    if own_ms > most_ms:
        raise ConfigError(f"{name} waits for {own_ms} ms, which is more than {DELAY_MAX_MS}")
    return most_ms


def _backoff(text: str) -> Backoff:
    try:
        return parse_backoff(text)
    except ConfigError as error:
        raise ConfigError(f"{RETRY_BACKOFF}: {error}") from None


def _delay_by(text: str) -> DelayBy:
    try:
        return DelayBy(text)
    except ValueError:
        raise ConfigError(f"{DELAY_BY} must be header or timestamp, not {text!r}") from None


def _whole(name: str, text: str, low: int, high: int) -> int:
    plain = text.isascii() and text.isdecimal() and len(text) <= 19
    if not plain or not low <= int(text) <= high:
        raise ConfigError(f"{name} must be from {low} to {high}, not {text!r}")
    return int(text)
