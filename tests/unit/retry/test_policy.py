"""When records are due, and which ones are dead letters."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.delay_route import Route, route_of
from penstock.config.duration import DAY_MS, HOUR_MS, MINUTE_MS, MOST_MS
from penstock.record.dead_letter import Header, read_dead_letter
from penstock.record.record import Record
from penstock.retry.policy import (
    Cancel,
    Dead,
    Recur,
    WaitUntil,
    dead_headers,
    delivered_headers,
    judge,
    recurring_headers,
)
from penstock.types import TopicPartition

NOW = 1_800_000_000_000
LATER = TopicPartition("later", 3)
AGAIN = TopicPartition("again", 1)


def delay(**settings: str) -> Route:
    route = route_of("later", {"penstock.delay.to": "orders", **named(settings)})
    assert route is not None
    return route


def retry(**settings: str) -> Route:
    route = route_of("again", {"penstock.retry.to": "orders", **named(settings)})
    assert route is not None
    return route


def named(settings: dict[str, str]) -> dict[str, str]:
    return {f"penstock.{name.replace('_', '.')}": text for name, text in settings.items()}


def record(
    *headers: Header, timestamp: int = NOW, key: bytes | None = b"k", offset: int = 8
) -> Record:
    return Record(offset, timestamp, key, b"v", list(headers))


def due(route: Route, *headers: Header, timestamp: int = NOW, now: int = NOW) -> int:
    verdict = judge(record(*headers, timestamp=timestamp), LATER, route, now)
    assert isinstance(verdict, WaitUntil), verdict
    return verdict.due_ms


def reason(route: Route, *headers: Header, key: bytes | None = b"k") -> str:
    verdict = judge(record(*headers, key=key), LATER, route, NOW)
    assert isinstance(verdict, Dead), verdict
    return verdict.reason


def test_three_headers_set_the_delivery_time() -> None:
    assert due(delay(), ("penstock-deliver-at", b"1800000005000")) == NOW + 5000
    iso = datetime.fromtimestamp(NOW / 1000 + 7, UTC).isoformat().encode()
    assert due(delay(), ("penstock-deliver-at", iso)) == NOW + 7000
    assert due(delay(), ("penstock-deliver-at", iso.replace(b"+00:00", b"Z"))) == NOW + 7000
    assert due(delay(), ("penstock-delay-ms", b"30000")) == NOW + 30_000


def test_the_time_wins_over_the_delay() -> None:
    headers = (("penstock-delay-ms", b"30000"), ("penstock-deliver-at", b"%d" % (NOW + 1)))
    assert due(delay(), *headers) == NOW + 1


def test_the_last_header_of_a_name_counts() -> None:
    assert due(delay(), ("penstock-delay-ms", b"99"), ("penstock-delay-ms", b"50")) == NOW + 50


def test_a_record_without_headers_waits_as_configured_in_its_topic() -> None:
    assert due(delay(delay_ms="60000")) == NOW + 60_000
    assert due(delay()) == NOW


def test_a_retry_waits_from_its_arrival_whatever_its_timestamp() -> None:
    """Consumers pass on the timestamp of the record that failed."""
    route = retry(retry_backoff="10s")
    assert due(route, timestamp=NOW - DAY_MS) == NOW + 10_000
    assert due(route, ("penstock-delay-ms", b"500"), timestamp=NOW - DAY_MS) == NOW + 500
    assert due(delay(delay_ms="60000"), timestamp=NOW - 1000) == NOW + 59_000


def test_the_timestamp_may_be_the_delivery_time() -> None:
    by_timestamp = delay(delay_by="timestamp")
    assert due(by_timestamp, timestamp=NOW + DAY_MS) == NOW + DAY_MS
    assert due(by_timestamp, ("penstock-delay-ms", b"1000"), timestamp=NOW + 5) == NOW + 5


def test_a_delay_counts_from_the_timestamp_unless_it_is_in_the_future() -> None:
    header = ("penstock-delay-ms", b"1000")
    assert due(delay(), header, timestamp=NOW - 400) == NOW + 600
    assert due(delay(), header, timestamp=NOW + HOUR_MS) == NOW + 1000


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("penstock-deliver-at", b"tomorrow", "neither epoch milliseconds nor ISO 8601"),
        ("penstock-deliver-at", b"", "neither"),
        ("penstock-deliver-at", b"9" * 400, "whole number"),
        ("penstock-deliver-at", b"%d" % (NOW + MOST_MS + 1), "more ahead than penstock.delay.max"),
        ("penstock-delay-ms", b"-5", "whole number"),
        ("penstock-delay-ms", b"1e3", "whole number"),
        ("penstock-delay-ms", "٣".encode(), "whole number"),
        ("penstock-delay-ms", b"\xff\xfe", "not UTF-8"),
        ("penstock-delay-ms", None, "whole number"),
        ("penstock-delay-ms", b"%d" % (MOST_MS + 1), "more ahead than penstock.delay.max.ms"),
        ("penstock-delay-ms", b"9" * 19, "must be from 0"),
        ("penstock-schedule", b"every now and then", "not a duration"),
        ("penstock-schedule", b"every 1ms", "out of bounds"),
        ("penstock-schedule", b"every 100ms", "once a second"),
        ("penstock-schedule", b"* * *", "3 fields, not five"),
        ("penstock-schedule", b"0 0 31 2 *", "no day that exists"),
        ("penstock-schedule", b"61 * * * *", "no minute from 0 to 59"),
        ("penstock-schedule", b"30 2 25-31 3 */7 Europe/Berlin", "no time that exists"),
        ("penstock-schedule", b"30 2 8-14 3 */7 America/New_York", "no time that exists"),
        ("penstock-schedule", b"0 9 * * * Mars/Olympus", "time zone"),
        ("penstock-schedule", b"*/1," * 200_000 + b"0 9 * * *", "longer than 500"),
        ("penstock-schedule", b"0 9 * * * ../../etc/passwd", "time zone"),
    ],
)
def test_bad_headers_make_dead_letters(name: str, value: bytes | None, says: str) -> None:
    assert says in reason(delay(), (name, value))


@given(
    st.sampled_from(
        [
            "penstock-deliver-at",
            "penstock-delay-ms",
            "penstock-schedule",
            "penstock-schedule-start",
            "penstock-schedule-origin",
            "penstock-attempt",
            "penstock-cancel",
            "penstock-next-at",
        ]
    ),
    st.one_of(st.none(), st.binary(max_size=60), st.text(max_size=60).map(str.encode)),
    st.booleans(),
)
def test_no_header_raises(name: str, value: bytes | None, is_retry: bool) -> None:
    route = retry() if is_retry else delay()
    headers = [("penstock-schedule", b"every 5s"), (name, value)]
    verdict = judge(record(*headers), LATER, route, NOW)
    if isinstance(verdict, Dead):
        dead_headers(record(*headers), LATER, route, verdict)
    elif not isinstance(verdict, Cancel):
        assert 0 <= verdict.due_ms <= NOW + MOST_MS
        delivered_headers(record(*headers), LATER, verdict)


def test_retries_count_their_attempts_and_back_off() -> None:
    route = retry(retry_backoff="1s,10s,1m")
    waits = [due(route, *[("penstock-attempt", b"%d" % n)] * (n > 0)) - NOW for n in range(3)]
    assert waits == [1000, 10_000, MINUTE_MS]
    assert reason(route, ("penstock-attempt", b"3")) == "gave up after 3 attempts"
    assert reason(route, ("penstock-attempt", b"3"), ("penstock-error", b"no stock")) == (
        "gave up after 3 attempts: no stock"
    )
    assert reason(route, ("penstock-attempt", b"5")) == (
        "gave up after 5 attempts, where again allows 3"
    )
    assert (
        reason(retry(retry_backoff="1s"), ("penstock-attempt", b"1")) == "gave up after 1 attempt"
    )
    assert "whole number" in reason(route, ("penstock-attempt", b"NaN"))
    assert "must be from" in reason(route, ("penstock-attempt", b"9999999999999"))


YEARS = b"315360000000"


@pytest.mark.parametrize(
    ("route", "header", "limit"),
    [
        (retry(retry_backoff="1s,2s"), ("penstock-delay-ms", YEARS), DAY_MS),
        (retry(), ("penstock-deliver-at", b"%d" % (NOW + DAY_MS + 1)), DAY_MS),
        (retry(delay_max_ms="5000", retry_backoff="1s"), ("penstock-delay-ms", b"5001"), 5000),
        (delay(delay_max_ms="60000"), ("penstock-delay-ms", b"60001"), MINUTE_MS),
        (delay(delay_max_ms="60000"), ("penstock-deliver-at", b"%d" % (NOW + 60_001)), MINUTE_MS),
        (delay(delay_max_ms="60000"), ("penstock-schedule", b"every 61s"), MINUTE_MS),
        (delay(delay_max_ms="60000"), ("penstock-schedule", b"0 9 29 2 *"), MINUTE_MS),
    ],
)
def test_a_record_waits_no_longer_than_its_topic_allows(
    route: Route, header: Header, limit: int
) -> None:
    """One forged header must not keep the log for ten years (CVE-2026-41727)."""
    assert reason(route, header).endswith(
        f"is more ahead than penstock.delay.max.ms of {route.topic}: {limit}"
    )


def test_a_delay_of_exactly_the_maximum_is_allowed() -> None:
    assert due(retry(), ("penstock-delay-ms", b"%d" % DAY_MS)) == NOW + DAY_MS
    assert due(retry(retry_backoff="1s,3d"), ("penstock-delay-ms", b"%d" % (3 * DAY_MS))) > NOW
    stamped = {"timestamp": NOW - DAY_MS}  # a producer may pass on an old timestamp
    at = ("penstock-deliver-at", b"%d" % (NOW + 60_000))
    assert due(delay(delay_max_ms="60000"), at, **stamped) == NOW + 60_000


def test_timestamps_and_recurring_schedules_are_bounded_too() -> None:
    by_timestamp = delay(delay_by="timestamp", delay_max_ms="1000")
    assert due(by_timestamp, timestamp=NOW + 1000) == NOW + 1000
    assert isinstance(judge(record(timestamp=NOW + 1001), LATER, by_timestamp, NOW), Dead)
    forged = (
        ("penstock-schedule", b"every 5s"),
        ("penstock-schedule-start", b"%d" % NOW),
        ("penstock-schedule-origin", b"1"),
        ("penstock-next-at", b"%d" % (NOW + DAY_MS)),
    )
    assert "penstock-next-at must be from 0" in reason(delay(delay_max_ms="60000"), *forged)


@pytest.mark.parametrize("timestamp", [-1, 0, 220_924_800_000, NOW])
def test_a_schedule_far_ahead_of_its_record_is_a_dead_letter(timestamp: int) -> None:
    """Timestamps are untrusted too: after 1976 the next such day is in 2004."""
    sunday = record(("penstock-schedule", b"0 0 29 2 */7"), timestamp=timestamp)
    verdict = judge(sunday, LATER, delay(delay_max_ms="60000"), NOW)
    assert isinstance(verdict, Dead), verdict
    assert "more ahead" in verdict.reason


def test_jitter_is_the_same_each_time_the_topic_is_read() -> None:
    route = retry(retry_backoff="exponential(10s,2,10m,jitter=0.2)")
    first, again = (judge(record(offset=5), AGAIN, route, NOW) for _ in range(2))
    assert first == again
    assert isinstance(first, WaitUntil)
    assert 8_000 <= first.due_ms - NOW <= 12_000
    dues = {judge(record(offset=each), AGAIN, route, NOW) for each in range(50)}
    assert len(dues) > 40


def test_a_retry_carries_its_attempt_and_origin() -> None:
    sent = record(("trace", b"1"), ("penstock-error", b"boom"), ("penstock-delay-ms", b"50"))
    verdict = judge(sent, AGAIN, retry(), NOW)
    assert isinstance(verdict, WaitUntil)
    assert dict(delivered_headers(sent, AGAIN, verdict)) == {
        "trace": b"1",
        "penstock-error": b"boom",
        "penstock-origin-topic": b"again",
        "penstock-origin-partition": b"1",
        "penstock-origin-offset": b"8",
        "penstock-attempt": b"1",
        "penstock-next-at": b"%d" % (NOW + 50),
    }


def test_the_first_origin_stays_and_the_attempt_header_is_unique() -> None:
    sent = record(
        ("penstock-origin-topic", b"orders"),
        ("penstock-origin-partition", b"4"),
        ("penstock-origin-offset", b"77"),
        ("penstock-attempt", b"2"),
    )
    verdict = judge(sent, AGAIN, retry(), NOW)
    assert isinstance(verdict, WaitUntil)
    headers = delivered_headers(sent, AGAIN, verdict)
    assert dict(headers)["penstock-origin-offset"] == b"77"
    assert [value for name, value in headers if name == "penstock-attempt"] == [b"3"]
    letter = read_dead_letter(dead_headers(sent, AGAIN, retry(), Dead("why", 3)))
    assert letter is not None
    assert (letter.topic, letter.partition, letter.offset) == ("orders", 4, 77)
    assert (letter.source, letter.error, letter.attempt) == ("retry", "why", 3)


def test_a_delayed_record_arrives_as_it_was_sent() -> None:
    sent = record(("trace", b"1"), ("penstock-delay-ms", b"50"))
    verdict = judge(sent, LATER, delay(), NOW)
    assert isinstance(verdict, WaitUntil)
    assert delivered_headers(sent, LATER, verdict) == [("trace", b"1")]


def test_a_schedule_continues_from_its_start() -> None:
    sent = record(("penstock-schedule", b"every 5m"), ("x", b"y"))
    verdict = judge(sent, LATER, delay(), NOW)
    assert isinstance(verdict, Recur)
    assert (verdict.due_ms, verdict.origin) == (NOW + 5 * MINUTE_MS, 8)
    fired_late = verdict.due_ms + 11 * MINUTE_MS  # two times were missed
    onward = record(*recurring_headers(sent, verdict, fired_late), offset=20, timestamp=fired_late)
    next_verdict = judge(onward, LATER, delay(), fired_late)
    assert isinstance(next_verdict, Recur)
    assert (next_verdict.due_ms, next_verdict.origin) == (NOW + 20 * MINUTE_MS, 8)
    assert delivered_headers(onward, LATER, next_verdict) == [("x", b"y")]


def test_a_schedule_needs_a_key() -> None:
    assert "needs a key" in reason(delay(), ("penstock-schedule", b"every 5m"), key=None)
