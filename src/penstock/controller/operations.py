"""The controller's operations, carried out one at a time in the order they came.

The controller's image and the store must not drift apart: nothing else may happen between reading
the one and writing the other, and a caller that is cancelled must not interrupt its operation.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from penstock.controller.epoch import NotController
from penstock.errors import ErrorCode, KafkaError, StorageError
from penstock.metadata.errors import StoreUnavailable

T = TypeVar("T")


class StoreNotWritten(KafkaError):
    """The disk of the metadata store failed, or is full; nothing of the operation was written."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


logger = logging.getLogger(__name__)

EXPECTED_FAILURES = (NotController, StoreUnavailable)
"""Normal while the controller changes or the store is away; not worth a traceback."""


class Operations:
    """A queue with one owner, the task that runs `run`.

    `on_failure` is called after operations that leave the controller's state unknown: its epoch has
    passed, the store may or may not have the write, or no caller waited for the outcome.
    """

    def __init__(self, on_failure: Callable[[Exception], object]) -> None:
        self._on_failure = on_failure
        self._queue: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self.turn = asyncio.Lock()
        """Held by each operation and by a starting controller: the last operation of an earlier
        epoch ends before the next epoch begins, and later operations wait until it has begun.
        """

    async def run(self) -> None:
        """Carry operations out until cancelled."""
        while True:
            operation = await self._queue.get()
            async with self.turn:
                await operation()

    async def submit(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Queue the operation and wait for its outcome."""
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def carry_out() -> None:
            try:
                result = await operation()
            except StorageError as error:
                logger.error("a controller operation failed: %s", error)
                if not outcome.cancelled():
                    outcome.set_exception(StoreNotWritten(str(error)))
            except Exception as error:  # noqa: BLE001 (raised again in the caller)
                if isinstance(error, EXPECTED_FAILURES):
                    self._on_failure(error)
                if not outcome.cancelled():
                    outcome.set_exception(error)
            else:
                if not outcome.cancelled():
                    outcome.set_result(result)

        self._queue.put_nowait(carry_out)
        return await outcome

    def schedule(self, operation: Callable[[], Awaitable[None]]) -> None:
        """Queue the operation without waiting for it."""

        async def carry_out() -> None:
            try:
                await operation()
            except EXPECTED_FAILURES as error:
                self._on_failure(error)
            except StorageError as error:
                logger.error("a scheduled controller operation failed: %s", error)
                self._on_failure(error)
            except Exception as error:  # the boundary around a background operation
                logger.exception("a scheduled controller operation failed")
                self._on_failure(error)

        self._queue.put_nowait(carry_out)
