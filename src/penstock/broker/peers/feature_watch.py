"""Feature levels that the controller writes to `/feature`, for all other brokers."""

import asyncio
import logging
from collections.abc import Callable

from penstock.metadata import paths
from penstock.metadata.errors import StoreError
from penstock.metadata.features import Features
from penstock.metadata.reader import features_of
from penstock.metadata.records import MalformedRecord
from penstock.metadata.store import MetadataStore

logger = logging.getLogger(__name__)

RETRY_S = 0.2


class FeatureWatch:
    """Reads the node at each change, and after the store was away, when a change may be missed."""

    def __init__(self, store: MetadataStore, on_features: Callable[[Features], object]) -> None:
        self._store, self._on_features = store, on_features
        self._wake = asyncio.Event()

    async def run(self) -> None:
        watch = await self._store.watch(lambda _: self._wake.set(), data=[paths.FEATURE])
        session = self._store.watch_session(lambda _: self._wake.set())
        try:
            while True:
                self._wake.clear()
                try:
                    nodes = await self._store.get_many((paths.FEATURE,))
                    self._on_features(features_of(nodes.get(paths.FEATURE)))
                except MalformedRecord as error:
                    logger.warning("%s; the feature levels stay as they are", error)
                except StoreError as error:
                    logger.debug("cannot read the feature levels, trying again: %s", error)
                    await asyncio.sleep(RETRY_S)
                    continue
                await self._wake.wait()
        finally:
            watch.cancel()
            session.cancel()
