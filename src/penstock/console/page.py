"""One page that is made of a read."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from penstock.console.watch import ClusterWatch, Look


@dataclass(frozen=True, slots=True)
class Page:
    """Its template gets what `read` returns as `found`; None: there is no such thing."""

    path: str
    template: str
    read: Callable[[ClusterWatch, Look, Mapping[str, str]], Awaitable[object | None]]
    parameters: tuple[str, ...] = ()
    polls: bool = False
    """Made anew every few seconds; not if it has a form, which would be lost."""
