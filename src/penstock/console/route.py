"""A read-only route of the REST API."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """`answer` gets the last look and the parameters; it returns None if there is no such thing."""

    path: str
    summary: str
    response: Any
    """The type of the response."""
    answer: Callable[[ClusterWatch, ClusterLook, Mapping[str, str]], Awaitable[object | None]]
    parameters: tuple[str, ...] = ()
    """Required parameters."""
    optional: tuple[str, ...] = ()

    def check(self, names: Iterable[str]) -> None:
        """Raises unless each required parameter is given, none twice, and no unknown one."""
        # a list, because Counter would take a mapping's values for counts
        given = Counter(list(names))
        known = {*self.parameters, *self.optional}
        if not set(self.parameters) <= set(given) <= known or given.total() > len(given):
            optional = [f"{each} (optional)" for each in self.optional]
            wanted = ", ".join([*self.parameters, *optional])
            raise ConfigError(f"parameters must be: {wanted or 'none'}")


@dataclass(frozen=True, slots=True)
class OwnRoute:
    """A route about the console itself, without parameters."""

    path: str
    summary: str
    response: Any
    parameters: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
