"""A thread for store clients with blocking calls."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from penstock.retry.store.index import DueStoreUnavailable

T = TypeVar("T")

LIMIT_S: Final = 20.0
"""After this long without an answer the store counts as unavailable."""


class StoreWorker:
    """Runs calls one after the other, as a single connection requires."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    async def run(self, call: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(LIMIT_S):
                return await loop.run_in_executor(self._thread, call)
        except TimeoutError:
            raise DueStoreUnavailable(f"the {self._store} store does not answer") from None

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
