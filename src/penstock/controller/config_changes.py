"""Writes altered settings, with a notification for every broker."""

from collections.abc import Callable, Mapping

from penstock.config.effective import BrokerLayers
from penstock.controller import configs
from penstock.controller.configs import (
    BrokerResource,
    ClientMetricsResource,
    ClientResource,
    ConfigResource,
    GroupResource,
    TopicResource,
)
from penstock.controller.context import ControllerContext
from penstock.controller.cordoned import check_cordoned
from penstock.metadata import client_entity, paths
from penstock.metadata.config_delta import changed_configs
from penstock.metadata.image import ImageDelta
from penstock.metadata.reader import read_client_configs, read_configs, read_named_configs
from penstock.metadata.records import ConfigChange, ConfigOverrides, encode
from penstock.metadata.store import Create, Delete, MetadataStore, Operation, Set

NOTIFICATION_LIFE_MS = 15 * 60 * 1000
"""How long a notification stays, as in Kafka: enough for every broker to read it."""

UNCLEAN_ELECTION = "unclean.leader.election.enable"
"""A partition without a leader gets one as soon as an unclean election is allowed, as in Kafka."""


async def alter(
    context: ControllerContext,
    resource: ConfigResource,
    alteration: Callable[[Mapping[str, str]], Mapping[str, str]],
    layers: BrokerLayers,
    now_ms: int | None,
) -> None:
    """Check the altered settings, and write a change; without a time it is only checked.

    `layers` are the affected broker's current settings.
    """
    before = configs.current(resource, context.image)
    after = configs.checked(resource, alteration(before), layers)
    if isinstance(resource, BrokerResource) and resource.id is not None:
        check_cordoned(context.image.brokers.get(resource.id), after)
    if now_ms is not None and after != before:
        await _write(context, resource, after, now_ms)
        if before.get(UNCLEAN_ELECTION) != after.get(UNCLEAN_ELECTION):
            if isinstance(resource, TopicResource):
                context.repair_topic_soon(resource.name)
            else:
                context.repair_soon()


async def _write(
    context: ControllerContext, resource: ConfigResource, settings: Mapping[str, str], now_ms: int
) -> None:
    path = _path(resource)
    await context.epoch.write(
        *await _operations(context.store, resource, settings),
        Create(
            paths.CONFIG_CHANGE_PREFIX,
            encode(ConfigChange(entity_path=path.removeprefix("/config/"))),
            sequential=True,
        ),
    )
    await _drop_old_notifications(context, now_ms)
    match resource:
        case TopicResource(name):
            delta = ImageDelta(topic_configs={name: settings})
            await context.announce(delta, topic_configs=[name])
        case BrokerResource(None):
            delta = ImageDelta(default_broker_config=settings)
            await context.announce(delta, broker_configs=True)
        case BrokerResource(broker):
            assert broker is not None
            delta = ImageDelta(broker_configs={broker: settings})
            await context.announce(delta, broker_configs=True)
        case GroupResource(name):
            await context.announce(ImageDelta(group_configs={name: settings or None}))
        case ClientMetricsResource(name):
            await context.announce(ImageDelta(client_metrics={name: settings or None}))
        case ClientResource(entity):
            await context.announce(ImageDelta(client_configs={entity: settings}))


async def _operations(
    store: MetadataStore, resource: ConfigResource, settings: Mapping[str, str]
) -> list[Operation]:
    """The writes. A group or subscription without settings has no node: it need not exist."""
    path = _path(resource)
    data = encode(ConfigOverrides(config=dict(settings)))
    if await store.exists(path):
        is_reset = isinstance(resource, GroupResource | ClientMetricsResource) and not settings
        return [Delete(path) if is_reset else Set(path, data)]
    parents = paths.with_parents(path)[:-1]
    known = await store.get_many(parents)
    return [*(Create(each) for each in parents if each not in known), Create(path, data)]


def _path(resource: ConfigResource) -> str:
    match resource:
        case TopicResource(name):
            return paths.topic_config(name)
        case BrokerResource(broker):
            return paths.broker_config(broker)
        case GroupResource(name):
            return paths.group_config(name)
        case ClientMetricsResource(name):
            return paths.client_metrics_config(name)
        case ClientResource(entity):
            return client_entity.path_of(entity)


async def _drop_old_notifications(context: ControllerContext, now_ms: int) -> None:
    names = await context.store.children(paths.CONFIG_CHANGES)
    nodes = await context.store.get_many(f"{paths.CONFIG_CHANGES}/{name}" for name in names)
    old = [
        [Delete(path)]
        for path, node in nodes.items()
        if now_ms - node.created_ms > NOTIFICATION_LIFE_MS
    ]
    await context.epoch.write_each(old)  # another broker may have deleted them already


async def reread(context: ControllerContext) -> None:
    """Apply settings that others, such as Kafka's tools, wrote into the store themselves."""
    delta = changed_configs(
        context.image,
        await read_configs(context.store, paths.CONFIG_TOPICS),
        await read_configs(context.store, paths.CONFIG_BROKERS),
        await read_named_configs(context.store, paths.CONFIG_GROUPS),
        await read_client_configs(context.store),
        await read_named_configs(context.store, paths.CONFIG_CLIENT_METRICS),
    )
    if delta is not None:
        await context.announce(
            delta,
            topic_configs=delta.topic_configs,
            broker_configs=bool(delta.broker_configs) or delta.default_broker_config is not None,
        )
        if delta.topic_configs or delta.default_broker_config is not None:
            context.repair_soon()  # see `UNCLEAN_ELECTION`
