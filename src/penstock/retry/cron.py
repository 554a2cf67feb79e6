"""Cron: five fields, `minute hour day-of-month month day-of-week`, in a time zone.

A field is `*`, a number, a range `1-5`, a list `1,15`, or any of them with a step `*/10`. Months
and days of the week may be names; Sunday is 0 or 7. If both days are restricted, either suffices,
as in every cron.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from penstock.errors import ConfigError

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("day of week", 0, 7, DAYS),
)
HORIZON: Final = timedelta(days=366 * 8 + 1)
"""The 29th of February comes at least once in eight years, across 2100 too."""


@dataclass(frozen=True, slots=True)
class Cron:
    """The times that an expression names."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Both kinds of days are restricted: one that fits is enough."""
    zone: ZoneInfo

    def next_after_ms(self, now_ms: int) -> int:
        """The first time after now, as epoch milliseconds.

        A local time that a change of clocks leaves out is skipped on that day; one that comes
        twice counts once.
        """
        now = datetime.fromtimestamp(now_ms / 1000, self.zone)
        day = now.date()
        last = day + HORIZON
        while day <= last:
            if day.month in self.months and self._has_day(day.day, day.isoweekday() % 7):
                for hour in self.hours:
                    for minute in self.minutes:
                        local = datetime(
                            day.year, day.month, day.day, hour, minute, tzinfo=self.zone
                        )
                        utc = local.astimezone(UTC)
                        exists = utc.astimezone(self.zone).replace(tzinfo=None) == local.replace(
                            tzinfo=None
                        )
                        at_ms = round(utc.timestamp() * 1000)
                        if exists and at_ms > now_ms:
                            return at_ms
            day += timedelta(days=1)
        raise ConfigError("the cron expression names no day that exists")

    def _has_day(self, day: int, weekday: int) -> bool:
        if self.either_day:
            return day in self.days or weekday in self.weekdays
        return day in self.days and weekday in self.weekdays


def parse_cron(text: str, zone: ZoneInfo) -> Cron:
    fields = text.split()
    if len(fields) != len(FIELDS):
        raise ConfigError(
            f"{text!r} is not a cron expression: it has {len(fields)} fields, not five "
            "(minute hour day-of-month month day-of-week)"
        )
    minutes, hours, days, months, weekdays = (
        _field(field, *bounds) for field, bounds in zip(fields, FIELDS, strict=True)
    )
    return Cron(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        days,
        months,
        frozenset(each % 7 for each in weekdays),
        not fields[2].startswith("*") and not fields[4].startswith("*"),
        zone,
    )


def _field(text: str, name: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int]:
    chosen: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, part, name, 1, high, ()) if slash else 1
        if span == "*":
            first, last = low, high
        else:
            begin, dash, end = span.partition("-")
            first = _number(begin, part, name, low, high, names)
            last = _number(end, part, name, low, high, names) if dash else first
            if slash and not dash:
                last = high
            if last < first:
                raise ConfigError(f"cron: {part!r} ({name}) ends before it begins")
        chosen.update(range(first, last + 1, step))
    return frozenset(chosen)


def _number(text: str, part: str, name: str, low: int, high: int, names: tuple[str, ...]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + low
    if text.isascii() and text.isdecimal() and len(text) <= 4 and low <= int(text) <= high:
        return int(text)
    raise ConfigError(f"cron: {part!r} is no {name} from {low} to {high}")
