"""Protocols for the parts of an event loop that schedule calls."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Handle(Protocol):
    """A scheduled call."""

    def cancel(self) -> object: ...


class Loop(Protocol):
    """Schedules calls. asyncio's and uvloop's loops implement it, and `ManualLoop`."""

    def call_soon(self, callback: Callable[[], object], /) -> object: ...

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Handle: ...


async def with_turns(items: Iterable[T], in_one: int) -> AsyncIterator[T]:
    """The items; after each `in_one` of them, other work on the loop gets its turn."""
    for count, each in enumerate(items, 1):
        yield each
        if count % in_one == 0:
            await asyncio.sleep(0)
