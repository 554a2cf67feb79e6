"""Options as a job writes them: what each name is good for, and values with a type.

Spark's names ignore case. A name that nobody declares is an error that offers the nearest one;
a declared name may be taken, may have no effect here (a warning, so that a job moves from the
`kafka` format by changing one word), or may be refused with what to write instead.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from penstock.errors import ConfigError

KAFKA: Final = "kafka."
"""Before the settings of the Kafka client."""
MAX_INT32: Final = (1 << 31) - 1
MIN_INT64: Final = -(1 << 63)
MAX_INT64: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Taken:
    """An option that is read."""


@dataclass(frozen=True, slots=True)
class NoEffect:
    """An option that means nothing here, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class Refused:
    """An option that would be misunderstood, and what to write instead."""

    instead: str


Use: TypeAlias = Taken | NoEffect | Refused
TAKEN: Final = Taken()


class Options:
    """The options of one source or sink, looked up whatever their case."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._given

    def warnings(self, known: Mapping[str, Use]) -> list[str]:
        """What to tell about options without effect; `ConfigError` for one that cannot stand."""
        uses = {name.lower(): (name, use) for name, use in known.items()}
        told = []
        for given in self._given:
            if given not in uses:
                raise ConfigError(unknown(given, [name for name, _ in uses.values()]))
            name, use = uses[given]
            match use:
                case Refused(instead):
                    raise ConfigError(f"option {name} cannot be used: {instead}")
                case NoEffect(why):
                    told.append(f"option {name} has no effect: {why}")
                case Taken():
                    pass
        return told

    def text(self, name: str, default: str = "") -> str:
        return self._given.get(name.lower(), default).strip()

    def optional(self, name: str) -> str | None:
        """The value, or None where the option is not given."""
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
            raise ConfigError(f"option {name}: {text!r} is no whole number") from None
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
        """The choice that the value is, whatever its case."""
        if name not in self:
            return default
        text, offered = self.text(name), tuple(choices)
        for choice in offered:
            if choice.lower() == text.lower():
                return choice
        raise ConfigError(f"option {name}: {text!r} is none of {', '.join(offered)}")


def unknown(name: str, known: Iterable[str]) -> str:
    """One line about a name that nobody declares, with the nearest that somebody does."""
    from difflib import get_close_matches  # late: only a mistake needs it

    names = {each.lower(): each for each in known}
    nearest = get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    return f"unknown option {name}" + (f"; did you mean {names[nearest[0]]}?" if nearest else "")
