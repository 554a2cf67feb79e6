"""Levels of features as the controller leaves them at `/feature`, for brokers that are not it."""

import asyncio
import logging
from collections.abc import Callable

from penstock.metadata import paths
from penstock.metadata.features import Features
from penstock.metadata.reader import features_of
from penstock.metadata.refusal import StoreError
from penstock.metadata.store import MetadataStore

logger = logging.getLogger(__name__)

RETRY_S = 0.2


class FeatureWatch:
    """Reads the node again at each change, and when the store was away: a notice may be missed."""

    def __init__(self, store: MetadataStore, heard: Callable[[Features], object]) -> None:
        self._store, self._heard = store, heard
        self._wake = asyncio.Event()

    async def run(self) -> None:
        notices = await self._store.watch(lambda _: self._wake.set(), data=[paths.FEATURE])
        session = self._store.watch_session(lambda _: self._wake.set())
        try:
            while True:
                self._wake.clear()
                try:
                    nodes = await self._store.get_many((paths.FEATURE,))
                    self._heard(features_of(nodes.get(paths.FEATURE)))
                except StoreError as error:
                    logger.debug("levels of features were not read: %s", error)
                    await asyncio.sleep(RETRY_S)
                    continue
                await self._wake.wait()
        finally:
            notices.cancel()
            session.cancel()
