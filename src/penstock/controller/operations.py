"""One operation at a time, in the order they came, whoever asks.

The controller's image and the store must not drift apart: between reading one and writing the
other nothing else may happen, and nobody who stops waiting may break an operation off.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class Operations:
    """A queue with one owner, the task that runs `run`."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()

    async def run(self) -> None:
        """Carry operations out until cancelled."""
        while True:
            operation = await self._queue.get()
            await operation()

    async def submit(self, operation: Callable[[], Awaitable[T]]) -> T:
        """The operation's outcome, once it is its turn."""
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def carry_out() -> None:
            try:
                result = await operation()
            except Exception as error:  # noqa: BLE001 (all of it rises where it was asked)
                if not outcome.cancelled():
                    outcome.set_exception(error)
            else:
                if not outcome.cancelled():
                    outcome.set_result(result)

        self._queue.put_nowait(carry_out)
        return await outcome
