"""What parts that wait need of an event loop, whichever it is."""

from collections.abc import Callable
from typing import Protocol


class Handle(Protocol):
    """A call to come."""

    def cancel(self) -> object: ...


class Loop(Protocol):
    """Calls soon, and calls later. asyncio's and uvloop's loops are such, and `ManualLoop`."""

    def call_soon(self, callback: Callable[[], object], /) -> object: ...

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Handle: ...
