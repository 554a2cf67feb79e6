"""Cron: five fields, `minute hour day-of-month month day-of-week`, in a time zone.

A field is `*`, a number, a range `1-5`, a list `1,15`, or any of them with a step `*/10`. Months
and days of the week may be names; Sunday is 0 or 7. If both days are restricted, either suffices,
as in every cron.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from penstock.config.duration import MINUTE_MS
from penstock.counted import counted
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
HORIZON: Final = timedelta(days=366 * 41)
"""February 29 falls on each day of the week at least once in 40 years, even across 2100."""
LONGEST: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""The most days that each month may have."""


@dataclass(frozen=True, slots=True)
class Cron:
    """The times of a cron expression."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Both kinds of days are restricted: a match of either is enough."""
    every_hour: bool
    zone: ZoneInfo

    def next_after_ms(self, now_ms: int) -> int:
        """The first time after now, as epoch milliseconds.

        A local time that a clock change skips does not occur that day. A local time that occurs
        twice counts once, unless the expression names every hour: then a pause of an hour would
        surprise.

        Raises `ConfigError` if there is none, such as for 2:30 on the last Sundays of March.
        """
        at_ms = _next_after_ms(self, now_ms // MINUTE_MS)
        if at_ms is None:
            raise ConfigError(
                f"the cron expression names no time that exists: the clocks of {self.zone} leave "
                "out each that it names"
            )
        return at_ms

    def search_ms(self, now_ms: int) -> int | None:
        """Like `next_after_ms`, but not cached; None: there is none."""
        day = datetime.fromtimestamp(now_ms / 1000, self.zone).date()
        last = day + HORIZON
        while day <= last:
            if day.month not in self.months:
                day = (day.replace(day=1) + timedelta(days=31)).replace(day=1)
                continue
            if self._has_day(day.day, day.isoweekday() % 7):
                for hour in self.hours:
                    if (at_ms := self._in_hour(day, hour, now_ms)) is not None:
                        return at_ms
            day += timedelta(days=1)
        return None

    def _in_hour(self, day: date, hour: int, now_ms: int) -> int | None:
        """The first matching time of a local hour after now."""
        end = datetime(day.year, day.month, day.day, hour, 59, tzinfo=self.zone)
        if max(end.timestamp(), end.replace(fold=1).timestamp()) * 1000 <= now_ms:
            return None
        times = set()
        for minute in self.minutes:
            for fold in (0, 1) if self.every_hour else (0,):
                local = datetime(
                    day.year, day.month, day.day, hour, minute, tzinfo=self.zone, fold=fold
                )
                utc = local.astimezone(UTC)
                exists = utc.astimezone(self.zone).replace(tzinfo=None) == local.replace(
                    tzinfo=None
                )
                if exists:
                    times.add(round(utc.timestamp() * 1000))
        return min((each for each in times if each > now_ms), default=None)

    def _has_day(self, day: int, weekday: int) -> bool:
        if self.either_day:
            return day in self.days or weekday in self.weekdays
        return day in self.days and weekday in self.weekdays


@lru_cache(maxsize=1024)
def _next_after_ms(cron: Cron, minute: int) -> int | None:
    """Cached per minute: many keys share a schedule, so its next time is computed once."""
    return cron.search_ms(minute * MINUTE_MS)


def parse_cron(text: str, zone: ZoneInfo) -> Cron:
    fields = text.split()
    if len(fields) != len(FIELDS):
        raise ConfigError(
            f"{text!r} is not a cron expression: it has {counted(len(fields), 'field')}, not five "
            "(minute hour day-of-month month day-of-week)"
        )
    minutes, hours, days, months, weekdays = (
        _field(field, *bounds) for field, bounds in zip(fields, FIELDS, strict=True)
    )
    either_day = not fields[2].startswith("*") and not fields[4].startswith("*")
    if not either_day and all(min(days) > LONGEST[each - 1] for each in months):
        raise ConfigError("the cron expression names no day that exists")
    return Cron(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        days,
        months,
        frozenset(each % 7 for each in weekdays),
        either_day,
        fields[1] == "*",
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
