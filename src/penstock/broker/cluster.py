"""The cluster as this broker knows it, and the settings that follow from it."""

import logging
from collections.abc import Mapping

from penstock.config.broker import BrokerConfig, broker_config, broker_settings
from penstock.config.consumer_group import ConsumerGroupConfig, effective_group_config
from penstock.config.effective import BrokerLayers, effective_topic_config, stored_layers
from penstock.config.group import GroupConfig
from penstock.config.setting import Setting, settings
from penstock.config.share import ShareConfig
from penstock.config.share_group import ShareGroupConfig, effective_share_config
from penstock.config.stored import unusable, without_effect
from penstock.config.streams_group import StreamsGroupConfig, effective_streams_config
from penstock.config.topic import TopicConfig
from penstock.errors import ConfigError
from penstock.metadata.image import ClusterImage, Configs
from penstock.types import BrokerId

logger = logging.getLogger(__name__)

NOTHING: Configs = {}


class Cluster:
    """Holds the current image, which is replaced as a whole at each change.

    `static` has this broker's settings as given at start, by name; later alterations are in the
    image. Belongs to the event loop.
    """

    def __init__(self, broker_id: BrokerId, static: Mapping[str, str], image: ClusterImage) -> None:
        self._broker_id, self.static = broker_id, dict(static)
        self.image = image
        self._altered: tuple[Configs, Configs] | None = None
        self._config: BrokerConfig
        self._layers: BrokerLayers
        self._reported: set[str] = set()
        self._groups: tuple[GroupConfig, Mapping[str, Configs]] | None = None
        self._group_configs: dict[str, ConsumerGroupConfig] = {}
        self._shares: tuple[ShareConfig, Mapping[str, Configs]] | None = None
        self._share_configs: dict[str, ShareGroupConfig] = {}
        self._last_topic: tuple[Configs, BrokerConfig, TopicConfig] | None = None

    @property
    def layers(self) -> BrokerLayers:
        """The sources of this broker's settings."""
        _ = self.config
        return self._layers

    @property
    def config(self) -> BrokerConfig:
        """The broker's current settings."""
        default = self.image.default_broker_config
        own = self.image.broker_configs.get(self._broker_id, NOTHING)
        known = self._altered
        if known is None or known[0] is not default or known[1] is not own:
            self._altered = (default, own)
            self._report("all brokers", default, broker_settings())
            self._report(f"broker {self._broker_id}", own, broker_settings())
            self._layers = stored_layers(self.static, default, own)
            try:
                self._config = broker_config(self._layers.texts())
            except ConfigError as error:
                self._warn(f"the altered settings of the brokers are ignored: {error}")
                self._layers = BrokerLayers(self.static)
                self._config = broker_config(self.static)
        return self._config

    def _report(self, whose: str, given: Configs, known: Mapping[str, Setting]) -> None:
        for error in unusable(given, known).values():
            self._warn(f"a setting of {whose} is ignored: {error}")
        for name, why in without_effect(given, known).items():
            # Warn for the first topic only: a tool may set it on thousands.
            self._warn(f"{name}={given[name]} of {whose}: {why}", about=name)

    def _warn(self, message: str, about: str | None = None) -> None:
        """Log a warning once: the settings of a topic are computed again and again."""
        about = about or message
        if about not in self._reported:
            self._reported.add(about)
            logger.warning("%s", message)

    def group_config(self, group: str) -> ConsumerGroupConfig:
        """A group's current settings; read at every heartbeat."""
        broker, altered = self.config.group, self.image.group_configs
        known = self._groups
        if known is None or known[0] is not broker or known[1] is not altered:
            self._groups = (broker, altered)
            self._group_configs = {
                name: effective_group_config(given, broker) for name, given in altered.items()
            }
            self._group_default = effective_group_config({}, broker)
        return self._group_configs.get(group, self._group_default)

    def share_group_config(self, group: str) -> ShareGroupConfig:
        """A share group's current settings; read at every fetch."""
        broker, altered = self.config.share, self.image.group_configs
        known = self._shares
        if known is None or known[0] is not broker or known[1] is not altered:
            self._shares, self._share_configs = (broker, altered), {}
            self._share_default = effective_share_config(NOTHING, broker)
        if group not in altered:
            return self._share_default  # clients choose names: remembering each fills the memory
        found = self._share_configs.get(group)
        if found is None:
            found = self._share_configs[group] = effective_share_config(altered[group], broker)
        return found

    def streams_group_config(self, group: str) -> StreamsGroupConfig:
        """A streams group's current settings; read at every heartbeat."""
        return effective_streams_config(
            self.image.group_configs.get(group, NOTHING), self.config.streams
        )

    def topic_config(self, topic: str) -> TopicConfig:
        """A topic's current settings; read for all partitions of a topic in a row, so the last is
        cached.
        """
        given, broker = self.image.topic_configs.get(topic, NOTHING), self.config
        last = self._last_topic
        if last is None or last[0] is not given or last[1] is not broker:
            self._report(f"topic {topic}", given, settings(TopicConfig))
            last = (given, broker, effective_topic_config(given, self.layers))
            self._last_topic = last
        return last[2]
