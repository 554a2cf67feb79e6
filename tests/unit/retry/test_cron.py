"""Cron expressions in time zones."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from penstock.errors import ConfigError
from penstock.retry.cron import parse_cron

BERLIN = ZoneInfo("Europe/Berlin")


def following(expression: str, start: str, count: int = 3, zone: ZoneInfo = BERLIN) -> list[str]:
    """Local times, beginning after the start."""
    cron = parse_cron(expression, zone)
    at_ms = round(datetime.fromisoformat(start).replace(tzinfo=zone).timestamp() * 1000)
    times = []
    for _ in range(count):
        at_ms = cron.next_after_ms(at_ms)
        times.append(datetime.fromtimestamp(at_ms / 1000, zone).strftime("%Y-%m-%dT%H:%M"))
    return times


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        ("*/20 * * * *", "2026-11-16T10:05", "11-16T10:20 11-16T10:40 11-16T11:00"),
        ("0 9 * * mon-fri", "2026-11-13T09:00", "11-16T09:00 11-17T09:00 11-18T09:00"),
        ("30 8 13 * 5", "2026-11-01T00:00", "11-06T08:30 11-13T08:30 11-20T08:30"),
        ("0 12 * * 7", "2026-11-16T00:00", "11-22T12:00 11-29T12:00 12-06T12:00"),
        ("5/30 1 * * *", "2026-11-16T00:00", "11-16T01:05 11-16T01:35 11-17T01:05"),
    ],
)
def test_times(expression: str, start: str, expected: str) -> None:
    assert following(expression, start) == [f"2026-{each}" for each in expected.split()]


@pytest.mark.parametrize(
    ("expression", "years"),
    [("0 0 1 jan *", [2027, 2028, 2029]), ("0 0 29 2 *", [2028, 2032, 2036])],
)
def test_times_years_ahead(expression: str, years: list[int]) -> None:
    assert [int(each[:4]) for each in following(expression, "2026-01-01T00:00")] == years


def test_a_local_time_that_a_change_of_clocks_leaves_out_is_skipped() -> None:
    assert following("30 2 * * *", "2026-03-28T00:00", 2) == [
        "2026-03-28T02:30",
        "2026-03-30T02:30",
    ]


def test_a_local_time_that_comes_twice_counts_once() -> None:
    assert following("30 2 * * *", "2026-10-24T12:00", 2) == [
        "2026-10-25T02:30",
        "2026-10-26T02:30",
    ]


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "* * * * * *", "60 * * * *", "*/0 * * * *", "5-1 * * * *", "a * * * *"],
)
def test_bad_expressions(expression: str) -> None:
    with pytest.raises(ConfigError):
        parse_cron(expression, BERLIN)
