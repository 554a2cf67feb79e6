"""Recurring records: `every 5m`, or `0 9 * * mon-fri Europe/Berlin`; without a zone it is UTC."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from penstock.config.duration import SECOND_MS, parse_duration_ms
from penstock.errors import ConfigError
from penstock.retry.cron import Cron, parse_cron

EVERY: Final = "every "
CRON_FIELDS: Final = 5


@dataclass(frozen=True, slots=True)
class Every:
    """Repeats at equal intervals from the start; missed times are skipped."""

    period_ms: int

    def next_after_ms(self, start_ms: int, now_ms: int) -> int:
        passed = max(0, now_ms - start_ms) // self.period_ms
        return start_ms + (passed + 1) * self.period_ms


Schedule: TypeAlias = Every | Cron


def next_ms(schedule: Schedule, start_ms: int, now_ms: int) -> int:
    """The first time after now of a schedule that started at `start_ms`.

    Raises `ConfigError` if there is none.
    """
    if isinstance(schedule, Every):
        return schedule.next_after_ms(start_ms, now_ms)
    return schedule.next_after_ms(now_ms)


@lru_cache(maxsize=256)
def parse_schedule(text: str) -> Schedule:
    stripped = text.strip()
    if stripped.startswith(EVERY):
        period_ms = parse_duration_ms(stripped.removeprefix(EVERY).strip())
        if period_ms < SECOND_MS:
            raise ConfigError(f"{text!r}: a schedule repeats once a second at most")
        return Every(period_ms)
    fields = stripped.split()
    zone = fields.pop() if len(fields) == CRON_FIELDS + 1 else "UTC"
    return parse_cron(" ".join(fields), _zone(zone))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # also folder names of the database
        raise ConfigError(f"the time zone {name!r} is unknown; write e.g. Europe/Berlin") from None
