"""Settings that are altered while the broker runs, as `/config/changes` tells them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from penstock.metadata import paths
from penstock.metadata.config_delta import changed_configs
from penstock.metadata.image import ClusterImage, Configs, ImageDelta
from penstock.metadata.reader import read_configs, read_group_configs
from penstock.metadata.records import ConfigOverrides, decode
from penstock.metadata.refusal import StoreError
from penstock.metadata.store import MetadataStore

logger = logging.getLogger(__name__)

RETRY_S = 0.2


class ConfigWatch:
    """Reads all settings again at each notice: they are few, and a notice may be missed while
    the store is away.
    """

    def __init__(
        self,
        store: MetadataStore,
        image: Callable[[], ClusterImage],
        changed: Callable[[ImageDelta], Awaitable[None]],
    ) -> None:
        self._store, self._image, self._changed = store, image, changed
        self._wake = asyncio.Event()

    async def run(self) -> None:
        notices = await self._store.watch(
            lambda _: self._wake.set(), children=[paths.CONFIG_CHANGES]
        )
        session = self._store.watch_session(lambda _: self._wake.set())
        try:
            while True:
                self._wake.clear()
                try:
                    delta = await self._read()
                except StoreError as error:
                    logger.debug("settings were not read: %s", error)
                    await asyncio.sleep(RETRY_S)
                    continue
                if delta is not None:
                    await self._changed(delta)
                await self._wake.wait()
        finally:
            notices.cancel()
            session.cancel()

    async def _read(self) -> ImageDelta | None:
        topics = await read_configs(self._store, paths.CONFIG_TOPICS)
        brokers = await read_configs(self._store, paths.CONFIG_BROKERS)
        groups = await read_group_configs(self._store)
        return changed_configs(self._image(), topics, brokers, groups)

    async def topics(self, names: Iterable[str]) -> Mapping[str, Configs]:
        """The settings of these topics now."""
        listed = {paths.topic_config(name): name for name in names}
        nodes = await self._store.get_many(listed)
        return {
            listed[path]: decode(ConfigOverrides, node).config
            for path, node in nodes.items()
            if node.data is not None
        }
