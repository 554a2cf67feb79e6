"""Finds deleted topics whose deletion this broker was not notified of.

A controller announces deletions only within its own epoch and the broker's. A broker that hung past
its session, or whose controller died before it had announced everything, would list a deleted topic
for ever: the full set of control requests does not name it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from penstock.counted import counted
from penstock.metadata import paths
from penstock.metadata.errors import StoreError
from penstock.metadata.image import ClusterImage, ImageDelta
from penstock.metadata.reader import catch_up
from penstock.metadata.store import MetadataStore

logger = logging.getLogger(__name__)

RETRY_S = 0.2


class TopicWatch:
    """Checks once after each registration of this broker and for each new controller.

    Calls `on_deleted` with the topics that are not in the store and the image at that time; then
    `on_checked`, which may raise `StoreError` to be called again.
    """

    def __init__(
        self,
        store: MetadataStore,
        image: Callable[[], ClusterImage],
        on_deleted: Callable[[ImageDelta, ClusterImage], Awaitable[bool]],
        on_checked: Callable[[], Awaitable[None]],
    ) -> None:
        self._store, self._image = store, image
        self._on_deleted, self._on_checked = on_deleted, on_checked
        self._wake = asyncio.Event()

    def check(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._check()
            except StoreError as error:
                logger.debug("cannot read the topics, trying again: %s", error)
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    async def _check(self) -> None:
        image = self._image()
        await catch_up(self._store)
        names = set(await self._store.children(paths.TOPICS))
        names -= set(await self._store.children(paths.DELETE_TOPICS))
        deleted = dict.fromkeys(name for name in image.topics if name not in names)
        if deleted:
            logger.info(
                "removing %s deleted without notice, %s among them",
                counted(len(deleted), "topic"),
                min(deleted),
            )
            await self._on_deleted(ImageDelta(topics=deleted, topic_configs=deleted), image)
        await self._on_checked()
