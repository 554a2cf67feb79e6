"""What this broker knows of its cluster, and the settings that follow from it."""

from collections.abc import Mapping

from penstock.config.broker import BrokerConfig, broker_config
from penstock.config.consumer_group import ConsumerGroupConfig, effective_group_config
from penstock.config.effective import BrokerLayers, effective_topic_config
from penstock.config.group import GroupConfig
from penstock.config.topic import TopicConfig
from penstock.metadata.image import ClusterImage, Configs
from penstock.types import BrokerId

NOTHING: Configs = {}


class Cluster:
    """Holds the current image, which is replaced as a whole at each change.

    `static` are this broker's settings as they were given at start, by name; what is altered
    later is in the image. Belongs to the event loop.
    """

    def __init__(self, broker_id: BrokerId, static: Mapping[str, str], image: ClusterImage) -> None:
        self._broker_id, self.static = broker_id, dict(static)
        self.image = image
        self._altered: tuple[Configs, Configs] | None = None
        self._config: BrokerConfig
        self._groups: tuple[GroupConfig, Mapping[str, Configs]] | None = None
        self._group_configs: dict[str, ConsumerGroupConfig] = {}
        self._last_topic: tuple[Configs, BrokerConfig, TopicConfig] | None = None

    @property
    def layers(self) -> BrokerLayers:
        """Where this broker's settings come from."""
        own = self.image.broker_configs.get(self._broker_id, NOTHING)
        return BrokerLayers(self.static, self.image.default_broker_config, own)

    @property
    def config(self) -> BrokerConfig:
        """The broker's settings as they are now."""
        default = self.image.default_broker_config
        own = self.image.broker_configs.get(self._broker_id, NOTHING)
        known = self._altered
        if known is None or known[0] is not default or known[1] is not own:
            self._altered = (default, own)
            self._config = broker_config(self.layers.texts())
        return self._config

    def group_config(self, group: str) -> ConsumerGroupConfig:
        """A group's settings as they are now; asked at every heartbeat."""
        broker, altered = self.config.group, self.image.group_configs
        known = self._groups
        if known is None or known[0] is not broker or known[1] is not altered:
            self._groups = (broker, altered)
            self._group_configs = {
                name: effective_group_config(given, broker) for name, given in altered.items()
            }
            self._group_default = effective_group_config({}, broker)
        return self._group_configs.get(group, self._group_default)

    def topic_config(self, topic: str) -> TopicConfig:
        """A topic's settings as they are now; asked for all partitions of a topic in a row."""
        given, broker = self.image.topic_configs.get(topic, NOTHING), self.config
        last = self._last_topic
        if last is None or last[0] is not given or last[1] is not broker:
            last = (given, broker, effective_topic_config(given, self.layers))
            self._last_topic = last
        return last[2]
