"""Reads from the store again whenever it changes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from penstock.metadata.errors import StoreError
from penstock.metadata.store import MetadataStore

RETRY_S: Final = 0.2

logger = logging.getLogger(__name__)


async def follow(
    store: MetadataStore,
    read: Callable[[], Awaitable[object]],
    what: str,
    *,
    children: Sequence[str] = (),
    data: Sequence[str] = (),
) -> None:
    """Read now, when one of these nodes changes, and after the store was unavailable, when a change
    may have been missed.

    Runs until cancelled; `what` is for the log.
    """
    wake = asyncio.Event()
    watch = await store.watch(lambda _: wake.set(), children=children, data=data)
    session = store.watch_session(lambda _: wake.set())
    try:
        while True:
            wake.clear()
            try:
                await read()
            except StoreError as error:
                logger.debug("cannot read %s, trying again: %s", what, error)
                await asyncio.sleep(RETRY_S)
                continue
            await wake.wait()
    finally:
        watch.cancel()
        session.cancel()
