"""Notifies the controller of failed log directories; it then asks for the failed replicas."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from penstock.errors import StorageError
from penstock.metadata.errors import StoreError

logger = logging.getLogger(__name__)

RETRY_S = 1.0


class FailedDirectories:
    """Retries until `write` has put the notification into the metadata store, or until `close`.
    Belongs to the event loop.
    """

    def __init__(self, tasks: asyncio.TaskGroup, write: Callable[[], Awaitable[object]]) -> None:
        self._tasks, self._write = tasks, write
        self._running: set[asyncio.Task[None]] = set()
        self._is_open = True

    def report(self, path: Path) -> None:
        """Notify the controller; does nothing while this broker stops, as all its replicas go
        offline.
        """
        if self._is_open:
            task = self._tasks.create_task(self._report(path))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def close(self) -> None:
        """Stop retrying: otherwise the broker could not stop while the store is unreachable."""
        self._is_open = False
        for task in self._running:
            task.cancel()

    async def _report(self, path: Path) -> None:
        logged = ""
        while True:
            try:
                await self._write()
            except (StoreError, StorageError) as error:  # the store's disk may be full, too
                if str(error) != logged:
                    logged = str(error)
                    logger.warning(
                        "cannot notify the controller of the failed directory %s, trying again: %s",
                        path,
                        error,
                    )
                await asyncio.sleep(RETRY_S)
            else:
                return
