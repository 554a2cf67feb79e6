"""The difference between the settings in the store and those in an image. Pure."""

from collections.abc import Mapping
from typing import TypeVar

from penstock.metadata import paths
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.image import ClusterImage, Configs, ImageDelta
from penstock.metadata.records import broker_id_of

Key = TypeVar("Key")


def changed_configs(
    image: ClusterImage,
    topics: Mapping[str, Configs],
    brokers: Mapping[str, Configs],
    groups: Mapping[str, Configs],
    clients: Mapping[ClientEntity, Configs],
    metrics: Mapping[str, Configs],
) -> ImageDelta | None:
    """The changes that bring the image up to date; None if there are none.

    Settings of an existing topic are never removed.
    """
    removed: dict[str, Configs | None] = {
        name: None
        for name in image.topic_configs
        if name not in topics and name not in image.topics
    }
    default = brokers.get(paths.DEFAULT_ENTITY, {})
    by_id = {
        broker_id: given
        for name, given in brokers.items()
        if (broker_id := broker_id_of(name)) is not None
    }
    delta = ImageDelta(
        topic_configs=removed | _changed(topics, image.topic_configs),
        broker_configs=_changed(by_id, image.broker_configs),
        group_configs=_removed(groups, image.group_configs) | _changed(groups, image.group_configs),
        client_configs=_removed(clients, image.client_configs)
        | _changed(clients, image.client_configs),
        client_metrics=_removed(metrics, image.client_metrics)
        | _changed(metrics, image.client_metrics),
        default_broker_config=default if default != image.default_broker_config else None,
    )
    return None if delta == ImageDelta() else delta


def _removed(now: Mapping[Key, Configs], known: Mapping[Key, Configs]) -> dict[Key, Configs | None]:
    return {name: None for name in known if name not in now}


def _changed(now: Mapping[Key, Configs], known: Mapping[Key, Configs]) -> dict[Key, Configs | None]:
    return {key: given for key, given in now.items() if known.get(key) != given}
