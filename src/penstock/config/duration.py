"""Parses durations such as `500ms`, `10s`, `1h30m`, `7d`."""

import re
from typing import Final

from penstock.errors import ConfigError

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

LEAST_MS: Final = 10
MOST_MS: Final = 3653 * DAY_MS
"""The bounds of a delay: from ten milliseconds to ten years."""

_UNITS: Final = {
    "ms": 1,
    "s": SECOND_MS,
    "m": MINUTE_MS,
    "h": HOUR_MS,
    "d": DAY_MS,
    "w": 7 * DAY_MS,
}
_PART: Final = re.compile(r"([0-9]{1,15})(ms|[smhdw])")
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+")


def parse_duration_ms(text: str) -> int:
    """A duration in milliseconds, within the bounds of a delay."""
    if not _WHOLE.fullmatch(text):
        raise ConfigError(
            f"{text!r} is not a duration; write a number and a unit, e.g. 500ms, 10s, 1h30m, 7d"
        )
    total_ms = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if not LEAST_MS <= total_ms <= MOST_MS:
        raise ConfigError(
            f"{text!r} is out of bounds: a delay lasts from 10ms to ten years (3653d)"
        )
    return total_ms
