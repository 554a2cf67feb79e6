"""A page that shows the result of one read."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from penstock.console.watch import ClusterLook, ClusterWatch


@dataclass(frozen=True, slots=True)
class Page:
    """The template gets the result of `read` as `found`; None means not found."""

    path: str
    template: str
    read: Callable[[ClusterWatch, ClusterLook, Mapping[str, str]], Awaitable[object | None]]
    parameters: tuple[str, ...] = ()
    polls: bool = False
    """Whether the page reloads every few seconds; not for pages with a form, whose input
    would be lost.
    """
