"""One operation at a time, in the order they came, whoever asks.

The controller's image and the store must not drift apart: between reading one and writing the
other nothing else may happen, and nobody who stops waiting may break an operation off.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from penstock.controller.term import NotController
from penstock.metadata.refusal import StoreUnavailable

T = TypeVar("T")

logger = logging.getLogger(__name__)

OUT_OF_OFFICE = (NotController, StoreUnavailable)
"""What is to be expected where controllers change and the store comes and goes."""


class Operations:
    """A queue with one owner, the task that runs `run`.

    `failed` hears of operations after which nothing is sure any more: the term has passed, the
    store may or may not have what was written, or nobody waited for the outcome.
    """

    def __init__(self, failed: Callable[[Exception], object]) -> None:
        self._failed = failed
        self._queue: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self.turn = asyncio.Lock()
        """Held by each operation, and by a controller that starts: what is left over of an earlier
        term has ended before the next one begins, and what comes meanwhile waits for it.
        """

    async def run(self) -> None:
        """Carry operations out until cancelled."""
        while True:
            operation = await self._queue.get()
            async with self.turn:
                await operation()

    async def submit(self, operation: Callable[[], Awaitable[T]]) -> T:
        """The operation's outcome, once it is its turn."""
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def carry_out() -> None:
            try:
                result = await operation()
            except Exception as error:  # noqa: BLE001 (all of it rises where it was asked)
                if isinstance(error, OUT_OF_OFFICE):
                    self._failed(error)
                if not outcome.cancelled():
                    outcome.set_exception(error)
            else:
                if not outcome.cancelled():
                    outcome.set_result(result)

        self._queue.put_nowait(carry_out)
        return await outcome

    def schedule(self, operation: Callable[[], Awaitable[None]]) -> None:
        """Carry it out once it is its turn; nobody waits."""

        async def carry_out() -> None:
            try:
                await operation()
            except OUT_OF_OFFICE as error:
                self._failed(error)
            except Exception as error:  # the boundary around what nobody waits for
                logger.exception("an operation of the controller failed")
                self._failed(error)

        self._queue.put_nowait(carry_out)
