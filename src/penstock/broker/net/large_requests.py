"""Limits how many large requests run at a time.

They name very many partitions, topics or groups, and take seconds. They are decoded, and their
responses encoded, on another thread, and handled in turns, with other requests in between.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from penstock.broker.handling.slots import Slot
from penstock.types import Buffer
from penstock.wire.apis import Api
from penstock.wire.codec import yielding_decoder
from penstock.wire.schema import Message

LARGE_BYTES: Final = 1 << 18
LARGE_AT_WORK: Final = 8
HUGE_BYTES: Final = 1 << 22
"""A request of short names takes forty times its size once decoded. So at most `LARGE_AT_WORK`
large requests run at a time, and only one larger than `HUGE_BYTES`.
"""
MOST_ITEMS: Final = 2_000_000
"""The most items (names, partitions and so on) that a client's request may list, over all its
lists: handlers scan the lists before they take turns.
"""
LOGINS: Final = frozenset({17, 36})
"""SaslHandshake and SaslAuthenticate are never large. They hold one string, so none takes long. A
refusal is delayed, and clients that have not logged in must not hold the slots meanwhile.
"""

T = TypeVar("T")


def decoder_of_large(api: Api, version: int) -> Callable[[Buffer, int], tuple[Message, int]]:
    """The decoder of a large request, for another thread."""
    return yielding_decoder(api.request, version, None if api.inter_broker else MOST_ITEMS)


class LargeSlots:
    """The slots of large requests, one set for all connections of a broker."""

    def __init__(self) -> None:
        self.large, self.huge = asyncio.Semaphore(LARGE_AT_WORK), asyncio.Semaphore(1)

    async def run(
        self, api: Api, size_bytes: int, handle: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        """Handle a request in a slot, or at once if a broker sent it: clients must not delay it."""
        if api.inter_broker:
            return await handle()
        async with Slot(self.huge if size_bytes > HUGE_BYTES else self.large):
            return await handle()
