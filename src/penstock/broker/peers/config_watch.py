"""Settings that are altered while the broker runs, as `/config/changes` tells them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from penstock.metadata import paths
from penstock.metadata.image import ClusterImage, Configs, ImageDelta
from penstock.metadata.reader import read_configs
from penstock.metadata.records import ConfigOverrides, decode
from penstock.metadata.refusal import StoreError
from penstock.metadata.store import MetadataStore
from penstock.types import BrokerId

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
                    logger.info("settings were not read: %s", error)
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
        return changed_configs(self._image(), topics, brokers)

    async def topics(self, names: Iterable[str]) -> Mapping[str, Configs]:
        """The settings of these topics now."""
        listed = {paths.topic_config(name): name for name in names}
        nodes = await self._store.get_many(listed)
        return {
            listed[path]: decode(ConfigOverrides, node).config
            for path, node in nodes.items()
            if node.data is not None
        }


def changed_configs(
    image: ClusterImage, topics: Mapping[str, Configs], brokers: Mapping[str, Configs]
) -> ImageDelta | None:
    """What the image does not say yet; None: nothing."""
    default = brokers.get(paths.DEFAULT_ENTITY, {})
    by_id: dict[BrokerId, Configs] = {
        BrokerId(int(name)): given for name, given in brokers.items() if name.isdecimal()
    }
    delta = ImageDelta(
        topic_configs={
            name: given for name, given in topics.items() if image.topic_configs.get(name) != given
        },
        broker_configs={
            broker: given
            for broker, given in by_id.items()
            if image.broker_configs.get(broker) != given
        },
        default_broker_config=default if default != image.default_broker_config else None,
    )
    empty = not delta.topic_configs and not delta.broker_configs
    return None if empty and delta.default_broker_config is None else delta
