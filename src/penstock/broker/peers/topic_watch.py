"""Topics that were deleted while nobody told this broker of it.

A controller tells each broker what comes and goes, in its term and in the broker's life. A broker
that stood still past its session, or whose controller died before it had told everything, would
list such topics for ever: a full set of orders does not name what is not there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from penstock.metadata import paths
from penstock.metadata.image import ClusterImage, ImageDelta
from penstock.metadata.refusal import StoreError
from penstock.metadata.store import ANY_VERSION, Check, MetadataStore

logger = logging.getLogger(__name__)

RETRY_S = 0.2


class TopicWatch:
    """Looks once for each new life of this broker and each new controller.

    `gone` hears of topics that are not in the store, and what the image was when that was read.
    """

    def __init__(
        self,
        store: MetadataStore,
        image: Callable[[], ClusterImage],
        gone: Callable[[ImageDelta, ClusterImage], Awaitable[bool]],
    ) -> None:
        self._store, self._image, self._gone = store, image, gone
        self._wake = asyncio.Event()

    def look(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._look()
            except StoreError as error:
                logger.debug("topics were not read: %s", error)
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    async def _look(self) -> None:
        image = self._image()
        # Reads may be a moment behind; whatever was written before our own last write is seen.
        await self._store.multi((Check(paths.TOPICS, ANY_VERSION),))
        names = set(await self._store.children(paths.TOPICS))
        names -= set(await self._store.children(paths.DELETE_TOPICS))
        gone = dict.fromkeys(name for name in image.topics if name not in names)
        if gone:
            logger.info("%d topics were deleted unheard, %s among them", len(gone), min(gone))
            await self._gone(ImageDelta(topics=gone, topic_configs=gone), image)
