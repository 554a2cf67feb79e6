"""Parses and computes the back-off of a record before its next attempt.

1s,10s,1m,10m                        a delay per attempt; the last one is repeated
exponential(1s,2,10m,jitter=0.2)     1 s, 2 s, 4 s ... at most 10 min, each ± 20 %
"""

import math
import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from penstock.config.duration import LEAST_MS, MOST_MS, parse_duration_ms
from penstock.errors import ConfigError

MOST_FACTOR: Final = 100.0
_EXPONENTIAL: Final = re.compile(
    r"exponential\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*,\s*([^,()]+?)\s*"
    r"(?:,\s*jitter\s*=\s*([^,()]+?)\s*)?\)"
)


@dataclass(frozen=True, slots=True)
class StepBackoff:
    """A fixed delay for each attempt."""

    delays_ms: tuple[int, ...]

    @property
    def longest_ms(self) -> int:
        return max(self.delays_ms)

    def delay_ms(self, attempt: int, _chance: float) -> int:
        """The delay before this attempt, counted from 1."""
        return self.delays_ms[min(attempt, len(self.delays_ms)) - 1]


@dataclass(frozen=True, slots=True)
class ExponentialBackoff:
    """Each delay is the previous one times a factor, up to a limit; then jitter is applied."""

    first_ms: int
    factor: float
    most_ms: int
    jitter: float = 0.0

    @property
    def longest_ms(self) -> int:
        return min(round(self.most_ms * (1 + self.jitter)), MOST_MS)

    def delay_ms(self, attempt: int, chance: float) -> int:
        """The delay before this attempt, counted from 1; `chance` is in [0, 1)."""
        growth = (attempt - 1) * math.log(self.factor)
        steady_ms = (
            self.most_ms
            if growth >= math.log(self.most_ms / self.first_ms)  # also avoids an overflow
            else self.first_ms * math.exp(growth)
        )
        jittered_ms = round(steady_ms * (1 + self.jitter * (2 * chance - 1)))
        return min(max(jittered_ms, LEAST_MS), MOST_MS)


Backoff: TypeAlias = StepBackoff | ExponentialBackoff


def parse_backoff(text: str) -> Backoff:
    """Parse the syntax in the module's docstring."""
    stripped = text.strip()
    if not stripped.startswith("exponential"):
        return StepBackoff(tuple(parse_duration_ms(each.strip()) for each in stripped.split(",")))
    found = _EXPONENTIAL.fullmatch(stripped)
    if found is None:
        raise ConfigError(
            f"{text!r} is not a back-off; write 1s,10s,1m or exponential(1s,2,10m,jitter=0.2)"
        )
    first, factor, most, jitter = found.groups()
    backoff = ExponentialBackoff(
        parse_duration_ms(first),
        _number("the factor", factor, 1.0, MOST_FACTOR),
        parse_duration_ms(most),
        0.0 if jitter is None else _number("jitter", jitter, 0.0, 1.0),
    )
    if backoff.most_ms < backoff.first_ms:
        raise ConfigError(f"{text!r}: the longest delay, {most}, is below the first, {first}")
    return backoff


def _number(what: str, text: str, low: float, high: float) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ConfigError(f"{what} of a back-off must be a number, not {text!r}") from None
    if not low <= number <= high:  # also refuses NaN
        raise ConfigError(f"{what} of a back-off must be from {low:g} to {high:g}, not {text}")
    return number
