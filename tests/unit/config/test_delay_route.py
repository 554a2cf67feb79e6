"""Routes from topic settings, back-offs and durations."""

import pytest

from penstock.config.backoff import ExponentialBackoff, StepBackoff, parse_backoff
from penstock.config.delay_route import DelayBy, DelayRoute, RetryRoute, route_of
from penstock.config.duration import DAY_MS, MOST_MS, parse_duration_ms
from penstock.errors import ConfigError


def test_most_topics_have_no_route() -> None:
    assert route_of("orders", {}) is None
    assert route_of("orders", {"penstock.delay.to": "", "cleanup.policy": "delete"}) is None


def test_a_delay_topic_is_read() -> None:
    assert route_of("later", {"penstock.delay.to": "orders"}) == DelayRoute(
        topic="later",
        to="orders",
        default_ms=None,
        by=DelayBy.HEADER,
        most_ms=MOST_MS,
        dead_letters="later.dlq",
    )


def test_a_retry_topic_is_read() -> None:
    settings = {
        "penstock.retry.to": "orders",
        "penstock.retry.backoff": "1s, 1m",
        "penstock.dlq.topic": "dead",
    }
    assert route_of("again", settings) == RetryRoute(
        topic="again",
        to="orders",
        backoff=StepBackoff((1000, 60_000)),
        max_attempts=2,
        most_ms=DAY_MS,
        dead_letters="dead",
    )


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"delay.to": "a", "retry.to": "b"}, "exclude each other"),
        ({"delay.to": "later"}, "penstock.delay.to names the topic itself"),
        ({"delay.to": "a", "dlq.topic": "later"}, "penstock.dlq.topic names the topic itself"),
        ({"delay.to": "a/b"}, "penstock.delay.to: 'a/b' is not a valid topic name"),
        ({"retry.to": "__penstock_delay_state"}, "penstock.retry.to: .* of brokers and services"),
        ({"delay.to": "a", "dlq.topic": "__x"}, "penstock.dlq.topic: .* of brokers and services"),
        ({"delay.to": "a", "delay.ms": "9"}, "penstock.delay.ms must be from 10"),
        ({"delay.to": "a", "delay.ms": "soon"}, "penstock.delay.ms"),
        ({"delay.to": "a", "delay.max.ms": "9"}, "penstock.delay.max.ms must be from 10"),
        ({"delay.to": "a", "delay.max.ms": "1000000000000"}, "penstock.delay.max.ms must be"),
        (
            {"delay.to": "a", "delay.ms": "500", "delay.max.ms": "400"},
            "penstock.delay.ms waits for 500 ms, which is more than penstock.delay.max.ms",
        ),
        (
            {"retry.to": "a", "retry.backoff": "1s,1m", "delay.max.ms": "1000"},
            "penstock.retry.backoff waits for 60000 ms",
        ),
        ({"delay.to": "a", "delay.by": "key"}, "penstock.delay.by must be header or timestamp"),
        (
            {"retry.to": "a", "retry.backoff": "1x"},
            "penstock.retry.backoff: '1x' is not a duration",
        ),
        (
            {"retry.to": "a", "retry.max.attempts": "0"},
            "penstock.retry.max.attempts must be from 1",
        ),
    ],
)
def test_errors_name_the_bad_setting(settings: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        route_of("later", {f"penstock.{name}": text for name, text in settings.items()})


@pytest.mark.parametrize(
    ("topic", "says"),
    [
        ("__consumer_offsets", "__consumer_offsets is a topic of brokers and services"),
        ("x" * 246, "penstock.dlq.topic must be set"),
        ("a b", "penstock.dlq.topic must be set: 'a b' with .dlq is not a valid topic name"),
    ],
)
def test_some_topics_cannot_delay(topic: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        route_of(topic, {"penstock.delay.to": "orders"})


@pytest.mark.parametrize(
    ("text", "ms"),
    [("10ms", 10), ("1s", 1000), ("1h30m", 5_400_000), ("7d", 7 * DAY_MS), ("3653d", MOST_MS)],
)
def test_durations_are_parsed(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize(
    "text", ["", "5", "s", "1 s", "-1s", "9ms", "3654d", "1s,", "9" * 99 + "s"]
)
def test_bad_durations_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_duration_ms(text)


def test_the_last_step_of_a_backoff_is_repeated() -> None:
    backoff = parse_backoff("1s,10s")
    assert [backoff.delay_ms(attempt, 0.9) for attempt in (1, 2, 3, 999)] == [
        1000,
        10_000,
        10_000,
        10_000,
    ]


def test_an_exponential_backoff_is_computed() -> None:
    backoff = parse_backoff("exponential(1s,2,10s,jitter=0.5)")
    assert backoff == ExponentialBackoff(1000, 2.0, 10_000, 0.5)
    assert [backoff.delay_ms(attempt, 0.5) for attempt in (1, 2, 4, 5, 9999)] == [
        1000,
        2000,
        8000,
        10_000,
        10_000,
    ]
    assert (backoff.delay_ms(1, 0.0), backoff.delay_ms(1, 0.999999)) == (500, 1500)


@pytest.mark.parametrize(
    "text",
    [
        "exponential",
        "exponential(1s)",
        "exponential(1s,0.5,10s)",
        "exponential(1s,nan,10s)",
        "exponential(1s,2,10s,jitter=2)",
        "exponential(1s,two,10s)",
        "exponential(10s,2,1s)",
        "1s,,2s",
    ],
)
def test_bad_backoffs_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_backoff(text)
