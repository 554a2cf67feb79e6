"""Limits how many large requests run at a time: each holds a slot, and the others wait for one."""

import asyncio
from collections.abc import Awaitable
from contextvars import ContextVar
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")

_current: ContextVar["Slot | None"] = ContextVar("the slot of a large request", default=None)


class Slot:
    """`async with Slot(free):` runs its body in one of the slots that `free` counts."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free, self._is_held = free, False

    async def _take(self) -> None:
        await self._free.acquire()
        self._is_held = True

    def _leave(self) -> None:
        if self._is_held:
            self._is_held = False
            self._free.release()

    async def outside(self, wait: Awaitable[T]) -> T:
        """Await without holding the slot. If the wait raises or is cancelled, the slot is not taken
        again.
        """
        self._leave()
        found = await wait
        await self._take()
        return found

    async def __aenter__(self) -> Self:
        await self._take()
        self._before = _current.set(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.reset(self._before)
        self._leave()


async def outside_slot(wait: Awaitable[T]) -> T:
    """Await without holding the slot that this request has if it is a large one."""
    slot = _current.get()
    return await (wait if slot is None else slot.outside(wait))
