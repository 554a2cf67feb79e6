"""The producer ids that this broker may allocate, a block at a time."""

import asyncio
from collections.abc import Awaitable, Callable

from penstock.controller.producer_ids import ProducerIds
from penstock.errors import KafkaError
from penstock.types import ProducerId


class ProducerIdPool:
    """Allocates ids, each once. Belongs to the event loop."""

    def __init__(self, next_block: Callable[[], Awaitable[ProducerIds]]) -> None:
        self._next_block = next_block
        self._start = self._end = ProducerId(0)
        self._coming: asyncio.Future[None] | None = None
        """The running request for a block."""

    async def take(self) -> ProducerId:
        while self._start == self._end:
            if self._coming is None:
                await self._request_block(asyncio.get_running_loop().create_future())
            else:
                await asyncio.shield(self._coming)
        taken = self._start
        self._start = ProducerId(taken + 1)
        return taken

    async def _request_block(self, coming: asyncio.Future[None]) -> None:
        """Request one block for a burst of producers. If it is refused, all of them are: otherwise
        each in turn would wait for the controller again.
        """
        self._coming = coming
        try:
            self._start, self._end = await self._next_block()
        except KafkaError as error:
            coming.set_exception(error)
            coming.exception()  # marks it as retrieved: perhaps no one else awaits it
            raise
        finally:
            self._coming = None
            if not coming.done():
                coming.set_result(None)  # the block is here, or the request was cancelled
