"""The producer ids that this broker may hand out, a block at a time."""

import asyncio
from collections.abc import Awaitable, Callable

from penstock.controller.producer_ids import ProducerIds
from penstock.types import ProducerId


class ProducerIdPool:
    """Hands out ids, each once. Belongs to the event loop."""

    def __init__(self, next_block: Callable[[], Awaitable[ProducerIds]]) -> None:
        self._next_block = next_block
        self._start = self._end = ProducerId(0)
        self._turn = asyncio.Lock()

    async def take(self) -> ProducerId:
        async with self._turn:  # a burst of producers asks for one block, not for one each
            if self._start == self._end:
                self._start, self._end = await self._next_block()
            taken = self._start
            self._start = ProducerId(taken + 1)
            return taken
