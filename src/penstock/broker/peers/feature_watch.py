"""Follows the feature levels that the controller writes to `/feature`."""

import logging
from collections.abc import Callable

from penstock.metadata import paths
from penstock.metadata.features import Features
from penstock.metadata.following import follow
from penstock.metadata.reader import features_of
from penstock.metadata.records import MalformedRecord
from penstock.metadata.store import MetadataStore

logger = logging.getLogger(__name__)


class FeatureWatch:
    """Reads the node at each change, and after reconnecting to the store, as a change may be
    missed.
    """

    def __init__(self, store: MetadataStore, on_features: Callable[[Features], object]) -> None:
        self._store, self._on_features = store, on_features

    async def run(self) -> None:
        await follow(self._store, self._read, "the feature levels", data=[paths.FEATURE])

    async def _read(self) -> None:
        nodes = await self._store.get_many((paths.FEATURE,))
        try:
            self._on_features(features_of(nodes.get(paths.FEATURE)))
        except MalformedRecord as error:
            logger.warning("%s; the feature levels stay as they are", error)
