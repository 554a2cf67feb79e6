"""Helpers for checks of a metadata store: an ensemble to connect to, inboxes, expected errors."""

import asyncio
from collections.abc import Awaitable
from typing import Generic, Protocol, TypeVar

from penstock.metadata.errors import StoreError
from penstock.metadata.store import MetadataStore

PATIENCE_S = 10.0
"""The limit for a watch to fire; a correct store takes a small part of it."""

Item = TypeVar("Item")
Raised = TypeVar("Raised", bound=StoreError)


class Ensemble(Protocol):
    """A tree, empty at first, to which sessions connect. It closes the sessions that it opened."""

    async def connect(self) -> MetadataStore: ...

    async def expire(self, store: MetadataStore) -> None:
        """Expire the session, as a server does when its client is silent for too long."""
        ...


class Inbox(Generic[Item]):
    """Collects what a watch delivers."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[Item] = asyncio.Queue()
        self.put = self._items.put_nowait

    async def until(self, wanted: Item) -> list[Item]:
        """Wait for `wanted`; returns everything up to it."""
        received: list[Item] = []
        async with asyncio.timeout(PATIENCE_S):
            while not received or received[-1] != wanted:
                received.append(await self._items.get())
        return received


async def raised(kind: type[Raised], attempt: Awaitable[object]) -> Raised:
    """The error that `attempt` must raise."""
    try:
        await attempt
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")
