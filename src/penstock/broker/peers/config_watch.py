"""Follows settings altered at run time, by the notifications in `/config/changes`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from penstock.metadata import paths
from penstock.metadata.config_delta import changed_configs
from penstock.metadata.errors import StoreError
from penstock.metadata.image import ClusterImage, Configs, ImageDelta
from penstock.metadata.reader import (
    read_client_configs,
    read_configs,
    read_current_configs,
    read_named_configs,
)
from penstock.metadata.store import MetadataStore

logger = logging.getLogger(__name__)

RETRY_S = 0.2


class ConfigWatch:
    """Reads all settings at each notification: they are few, and a notification may be missed while
    the store is unreachable. Creating a topic causes no notification; `read_soon` reads its
    settings only.

    Calls `changed` with the difference to the image; it returns False if the image has changed
    since.
    """

    def __init__(
        self,
        store: MetadataStore,
        image: Callable[[], ClusterImage],
        changed: Callable[[ImageDelta, ClusterImage], Awaitable[bool]],
    ) -> None:
        self._store, self._image, self._changed = store, image, changed
        self._wake = asyncio.Event()
        self._reads_all = True
        self._wanted: set[str] = set()

    def read_soon(self, topics: Iterable[str]) -> None:
        """Read the settings of these topics soon."""
        self._wanted |= set(topics)
        self._wake.set()

    def _notified(self, _: object) -> None:
        self._reads_all = True
        self._wake.set()

    async def run(self) -> None:
        watch = await self._store.watch(self._notified, children=[paths.CONFIG_CHANGES])
        session = self._store.watch_session(self._notified)
        self._reads_all = True
        try:
            while True:
                self._wake.clear()
                if not await self._is_read():
                    await asyncio.sleep(RETRY_S)
                    continue
                await self._wake.wait()
        finally:
            watch.cancel()
            session.cancel()

    async def _is_read(self) -> bool:
        reads_all, self._reads_all = self._reads_all, False
        wanted, self._wanted = self._wanted, set()
        read_at = self._image()
        try:
            delta = await (self._read(read_at) if reads_all else self._read_some(wanted, read_at))
        except StoreError as error:
            logger.debug("cannot read the settings, trying again: %s", error)
            self._reads_all |= reads_all
            self._wanted |= wanted
            return False
        if delta is None or await self._changed(delta, read_at):
            self._wanted |= wanted if reads_all else set()
            return not self._wanted
        self._reads_all = True
        return False

    async def _read(self, image: ClusterImage) -> ImageDelta | None:
        topics = await read_configs(self._store, paths.CONFIG_TOPICS)
        brokers = await read_configs(self._store, paths.CONFIG_BROKERS)
        groups = await read_named_configs(self._store, paths.CONFIG_GROUPS)
        clients = await read_client_configs(self._store)
        metrics = await read_named_configs(self._store, paths.CONFIG_CLIENT_METRICS)
        return changed_configs(image, topics, brokers, groups, clients, metrics)

    async def _read_some(self, names: Iterable[str], image: ClusterImage) -> ImageDelta | None:
        found = await self.topics(names)
        changed = {
            name: given for name, given in found.items() if image.topic_configs.get(name) != given
        }
        return ImageDelta(topic_configs=changed) if changed else None

    async def topics(self, names: Iterable[str]) -> Mapping[str, Configs]:
        """The current settings of these topics; empty for those without a node.

        The controller announces a topic as soon as it has written it. A lagging server of the store
        would return no settings, or those of a deleted topic with the same name, so the store
        catches up first.
        """
        listed = {paths.topic_config(name): name for name in names}
        found = await read_current_configs(self._store, listed)
        return {listed[path]: given for path, given in found.items()}
