"""Altered settings, written so that every broker hears of them."""

from collections.abc import Mapping

from penstock.controller.configs import (
    BrokerResource,
    ConfigResource,
    GroupResource,
    TopicResource,
)
from penstock.controller.office import Office
from penstock.metadata import paths
from penstock.metadata.config_delta import changed_configs
from penstock.metadata.image import ImageDelta
from penstock.metadata.reader import read_configs, read_group_configs
from penstock.metadata.records import ConfigChange, ConfigOverrides, encode
from penstock.metadata.store import Create, Delete, MetadataStore, Operation, Set

NOTIFICATION_LIFE_MS = 15 * 60 * 1000
"""Kafka's own: time enough for each broker to read a notification."""


async def write(
    office: Office, resource: ConfigResource, configs: Mapping[str, str], now_ms: int
) -> None:
    path = _path(resource)
    entity = path.removeprefix("/config/")
    await office.term.write(
        *await _changed(office.store, resource, configs),
        Create(
            paths.CONFIG_CHANGE_PREFIX, encode(ConfigChange(entity_path=entity)), sequential=True
        ),
    )
    await _drop_old_notifications(office, now_ms)
    match resource:
        case TopicResource(name):
            delta = ImageDelta(topic_configs={name: configs})
            await office.announce(delta, topic_configs=[name])
        case BrokerResource(None):
            delta = ImageDelta(default_broker_config=configs)
            await office.announce(delta, broker_configs=True)
        case BrokerResource(broker):
            assert broker is not None
            delta = ImageDelta(broker_configs={broker: configs})
            await office.announce(delta, broker_configs=True)
        case GroupResource(name):
            await office.announce(ImageDelta(group_configs={name: configs or None}))


async def _changed(
    store: MetadataStore, resource: ConfigResource, configs: Mapping[str, str]
) -> list[Operation]:
    """What is written. A group without settings needs no node: there may be no such group."""
    path = _path(resource)
    data = encode(ConfigOverrides(config=dict(configs)))
    if await store.exists(path):
        is_gone = isinstance(resource, GroupResource) and not configs
        return [Delete(path) if is_gone else Set(path, data)]
    if isinstance(resource, GroupResource) and not await store.exists(paths.CONFIG_GROUPS):
        return [Create(paths.CONFIG_GROUPS), Create(path, data)]
    return [Create(path, data)]


def _path(resource: ConfigResource) -> str:
    match resource:
        case TopicResource(name):
            return paths.topic_config(name)
        case BrokerResource(broker):
            return paths.broker_config(broker)
        case GroupResource(name):
            return paths.group_config(name)


async def _drop_old_notifications(office: Office, now_ms: int) -> None:
    names = await office.store.children(paths.CONFIG_CHANGES)
    nodes = await office.store.get_many(f"{paths.CONFIG_CHANGES}/{name}" for name in names)
    old = [
        [Delete(path)]
        for path, node in nodes.items()
        if now_ms - node.created_ms > NOTIFICATION_LIFE_MS
    ]
    await office.term.write_each(old)  # each broker may have done so before us


async def reread(office: Office) -> None:
    """Take over what others have written into the store by themselves, as Kafka's tools do."""
    delta = changed_configs(
        office.image,
        await read_configs(office.store, paths.CONFIG_TOPICS),
        await read_configs(office.store, paths.CONFIG_BROKERS),
        await read_group_configs(office.store),
    )
    if delta is not None:
        await office.announce(
            delta,
            topic_configs=delta.topic_configs,
            broker_configs=bool(delta.broker_configs) or delta.default_broker_config is not None,
        )
