"""Cron expressions in time zones."""

from datetime import datetime, timedelta, tzinfo
from typing import cast
from zoneinfo import ZoneInfo

import pytest

from penstock.errors import ConfigError
from penstock.retry.cron import parse_cron

BERLIN = ZoneInfo("Europe/Berlin")


def following(expression: str, start: str, count: int = 3, zone: ZoneInfo = BERLIN) -> list[str]:
    """Local times after the start."""
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
def test_the_next_times_are_found(expression: str, start: str, expected: str) -> None:
    assert following(expression, start) == [f"2026-{each}" for each in expected.split()]


@pytest.mark.parametrize(
    ("expression", "years"),
    [("0 0 1 jan *", [2027, 2028, 2029]), ("0 0 29 2 *", [2028, 2032, 2036])],
)
def test_times_years_ahead_are_found(expression: str, years: list[int]) -> None:
    assert [int(each[:4]) for each in following(expression, "2026-01-01T00:00")] == years


def test_a_local_time_skipped_by_a_clock_change_is_skipped() -> None:
    assert following("30 2 * * *", "2026-03-28T00:00", 2) == [
        "2026-03-28T02:30",
        "2026-03-30T02:30",
    ]


def test_a_local_time_that_occurs_twice_fires_once() -> None:
    assert following("30 2 * * *", "2026-10-24T12:00", 2) == [
        "2026-10-25T02:30",
        "2026-10-26T02:30",
    ]


@pytest.mark.parametrize(
    ("expression", "zone", "start", "expected"),
    [
        # Clocks go from 2:00 to 3:00, and from 3:00 back to 2:00.
        ("*/30 * * * *", "Europe/Berlin", "2026-03-29T01:20", "01:30 03:00 03:30"),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T01:50", "02:00 02:30 02:00 02:30 03:00"),
        ("*/30 0-23 * * *", "Europe/Berlin", "2026-10-25T01:50", "02:00 02:30 03:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-03-28T12:00", "03:00 03:00"),
        # By half an hour: from 2:00 back to 1:30.
        ("15,45 * * * *", "Australia/Lord_Howe", "2026-04-05T01:00", "01:15 01:45 01:45 02:15"),
        # At midnight, which does not exist on that day.
        ("0 0 * * *", "Africa/Cairo", "2026-04-22T12:00", "00:00 00:00"),
        ("0 * * * *", "Africa/Cairo", "2026-04-23T22:10", "23:00 01:00 02:00"),
        ("0 * * * *", "UTC", "2026-10-25T00:30", "01:00 02:00 03:00"),
    ],
)
def test_clock_changes_are_respected(expression: str, zone: str, start: str, expected: str) -> None:
    wanted = expected.split()
    found = following(expression, start, len(wanted), ZoneInfo(zone))
    assert [each.partition("T")[2] for each in found] == wanted


def test_a_midnight_that_does_not_exist_is_skipped() -> None:
    found = following("0 0 * * *", "2026-04-22T12:00", 2, ZoneInfo("Africa/Cairo"))
    assert found == ["2026-04-23T00:00", "2026-04-25T00:00"]


@pytest.mark.parametrize("month", [3, 10])
def test_an_hourly_schedule_fires_every_hour(month: int) -> None:
    """Through clock changes too."""
    cron = parse_cron("0 * * * *", BERLIN)
    at_ms = round(datetime(2026, month, 20, tzinfo=BERLIN).timestamp() * 1000)
    for _ in range(24 * 14):
        next_ms = cron.next_after_ms(at_ms)
        assert next_ms - at_ms == 3_600_000
        at_ms = next_ms


@pytest.mark.parametrize("year", [1977, 2033, 2077])
def test_a_leap_day_on_one_weekday_is_found(year: int) -> None:
    """The next one may be 40 years ahead."""
    (found,) = following("0 0 29 2 */7", f"{year}-01-01T00:00", 1)
    assert datetime.fromisoformat(found).strftime("%d.%m. %a") == "29.02. Sun"


def test_late_in_the_day_earlier_hours_are_not_searched() -> None:
    """Thousands of keys may have such a schedule, and the whole service waits for the search."""
    asked = []

    class Counted(tzinfo):
        def utcoffset(self, at: datetime | None) -> timedelta:
            asked.append(at)
            return timedelta(0)

        dst = utcoffset

        def tzname(self, at: datetime | None) -> str:
            return f"counted at {at}"

    cron = parse_cron("* * * * *", cast("ZoneInfo", Counted()))
    at_ms = round(datetime.fromisoformat("2026-11-16T23:58:30Z").timestamp() * 1000)
    assert cron.next_after_ms(at_ms) == at_ms + 30_000
    assert len(asked) < 1_000, "a day's minutes are 2,880"
    asked.clear()
    assert cron.next_after_ms(at_ms + 1) == at_ms + 30_000
    assert not asked, "what was found counts for a minute"


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("30 2 25-31 3 */7", "Europe/Berlin"),
        ("0-59 2 25-31 3 */7", "Europe/Berlin"),
        ("30 2 8-14 3 */7", "America/New_York"),
    ],
)
def test_times_that_never_exist_are_refused(expression: str, zone: str) -> None:
    """Clocks go forward on those Sundays every year."""
    cron = parse_cron(expression, ZoneInfo(zone))
    at_ms = round(datetime.fromisoformat("2026-11-16T00:00Z").timestamp() * 1000)
    with pytest.raises(ConfigError, match=f"no time that exists: the clocks of {zone}"):
        cron.next_after_ms(at_ms)


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 31 2 *",
        "0 0 30-31 2 *",
        "0 0 31 4,6,9,11 */2",
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "*/0 * * * *",
        "5-1 * * * *",
        "a * * * *",
    ],
)
def test_bad_expressions_are_refused(expression: str) -> None:
    with pytest.raises(ConfigError):
        parse_cron(expression, BERLIN)
