"""Settings as the store has them, against those that an image knows. Pure."""

from collections.abc import Mapping
from typing import TypeVar

from penstock.metadata import paths
from penstock.metadata.image import ClusterImage, Configs, ImageDelta
from penstock.types import BrokerId

Key = TypeVar("Key")


def changed_configs(
    image: ClusterImage,
    topics: Mapping[str, Configs],
    brokers: Mapping[str, Configs],
    groups: Mapping[str, Configs],
) -> ImageDelta | None:
    """What the image does not say yet; None: nothing. A topic's settings go with the topic."""
    left: dict[str, Configs | None] = {
        name: None
        for name in image.topic_configs
        if name not in topics and name not in image.topics
    }
    default = brokers.get(paths.DEFAULT_ENTITY, {})
    by_id = {BrokerId(int(name)): given for name, given in brokers.items() if name.isdecimal()}
    gone: dict[str, Configs | None] = {
        name: None for name in image.group_configs if name not in groups
    }
    delta = ImageDelta(
        topic_configs=left | _news(topics, image.topic_configs),
        broker_configs=_news(by_id, image.broker_configs),
        group_configs=gone | _news(groups, image.group_configs),
        default_broker_config=default if default != image.default_broker_config else None,
    )
    return None if delta == ImageDelta() else delta


def _news(now: Mapping[Key, Configs], known: Mapping[Key, Configs]) -> dict[Key, Configs | None]:
    return {key: given for key, given in now.items() if known.get(key) != given}
