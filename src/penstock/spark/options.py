"""Options of a source or sink: which names exist, and their values by type.

Names ignore case, as in Spark. An unknown name is an error that suggests the nearest one. A known
name is supported, has no effect here (a warning, so that a job moves from the `kafka` format by
changing one word), or is an error that says what to use instead.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from penstock.errors import ConfigError

KAFKA: Final = "kafka."
"""The prefix of the Kafka client's settings."""
MAX_INT32: Final = (1 << 31) - 1
MIN_INT64: Final = -(1 << 63)
MAX_INT64: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Supported:
    """An option that is read."""


@dataclass(frozen=True, slots=True)
class NoEffect:
    """An option without effect, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class Unsupported:
    """An option that cannot be honoured, and what to use instead."""

    instead: str


Use: TypeAlias = Supported | NoEffect | Unsupported
SUPPORTED: Final = Supported()


class Options:
    """The options of one source or sink; names ignore case."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._given

    def warnings(self, known: Mapping[str, Use]) -> list[str]:
        """Warnings about options without effect; unknown and unsupported ones are errors."""
        uses = {name.lower(): (name, use) for name, use in known.items()}
        found = []
        for given in self._given:
            if given not in uses:
                raise ConfigError(unknown(given, [name for name, _ in uses.values()]))
            name, use = uses[given]
            match use:
                case Unsupported(instead):
                    raise ConfigError(f"option {name} cannot be used: {instead}")
                case NoEffect(why):
                    found.append(f"option {name} has no effect: {why}")
                case Supported():
                    pass
        return found

    def text(self, name: str, default: str = "") -> str:
        return self._given.get(name.lower(), default).strip()

    def optional(self, name: str) -> str | None:
        """The value, or None if the option is not set."""
        return self.text(name) if name in self else None

    def required(self, name: str) -> str:
        value = self.text(name)
        if not value:
            raise ConfigError(f"option {name} is missing")
        return value

    def integer(self, name: str, default: int, *, low: int = 0, high: int = MAX_INT64) -> int:
        if name not in self:
            return default
        text = self.text(name)
        try:
            value = int(text)
        except ValueError:
            raise ConfigError(f"option {name}: {text!r} is not an integer") from None
        if value < low:
            raise ConfigError(f"option {name}: {value} is below {low}")
        if value > high:
            raise ConfigError(f"option {name}: {value} is above {high}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        if name not in self:
            return default
        return self.one_of(name, ("true", "false"), "") == "true"

    def one_of(self, name: str, choices: Iterable[str], default: str) -> str:
        """The matching choice; case does not matter."""
        if name not in self:
            return default
        text, offered = self.text(name), tuple(choices)
        for choice in offered:
            if choice.lower() == text.lower():
                return choice
        raise ConfigError(f"option {name}: {text!r} is not one of {', '.join(offered)}")


def unknown(name: str, known: Iterable[str]) -> str:
    """The error text for an unknown name, with the nearest known one."""
    from difflib import get_close_matches  # late: only an error needs it

    names = {each.lower(): each for each in known}
    nearest = get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    return f"unknown option {name}" + (f"; did you mean {names[nearest[0]]}?" if nearest else "")
