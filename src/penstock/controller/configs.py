"""Alterations of the settings of topics, brokers, groups and clients. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from msgspec import Struct

from penstock.config.broker import broker_config, broker_settings, declared_setting
from penstock.config.client_metrics import ClientMetricsConfig, check_client_metrics, patterns
from penstock.config.consumer_group import ConsumerGroupConfig, check_group_config
from penstock.config.effective import BrokerLayers
from penstock.config.gradual import check_steps
from penstock.config.group import GroupConfig
from penstock.config.kafka_message import kafka_message
from penstock.config.listener_security import is_secret
from penstock.config.providers import check_reference
from penstock.config.regex import InvalidRegularExpression, matching
from penstock.config.security import SecurityConfig
from penstock.config.setting import Setting, Update, load, settings
from penstock.config.share import ShareConfig
from penstock.config.share_group import PREFIXES, ShareGroupConfig, check_share_config
from penstock.config.streams import StreamsConfig
from penstock.config.streams_group import StreamsGroupConfig, check_streams_config
from penstock.config.topic import TopicConfig
from penstock.config.value import ConfigType, render
from penstock.controller.topic_rules import UnknownTopic, check_name
from penstock.controller.topics import InvalidConfig, checked_configs
from penstock.errors import ConfigError, InvalidRequest
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.image import ClusterImage
from penstock.metadata.topic_names import COMPACTED_TOPICS
from penstock.types import BrokerId


class TopicResource(Struct, frozen=True):
    """The settings of one topic."""

    name: str


class BrokerResource(Struct, frozen=True):
    """The settings of one broker, or without an id the defaults of all brokers."""

    id: BrokerId | None


class GroupResource(Struct, frozen=True):
    """The settings of one group, which need not exist yet."""

    name: str


class ClientResource(Struct, frozen=True):
    """The stored settings of users, client ids and addresses: quotas and SCRAM credentials."""

    entity: ClientEntity


class ClientMetricsResource(Struct, frozen=True):
    """A subscription to metrics of clients (KIP-714)."""

    name: str


ConfigResource = (
    TopicResource | BrokerResource | GroupResource | ClientResource | ClientMetricsResource
)


class AlterOperation(IntEnum):
    """The operation on a setting, numbered as in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigAlteration(Struct, frozen=True):
    """One operation on one setting."""

    name: str
    operation: AlterOperation
    value: str | None = None


def current(resource: ConfigResource, image: ClusterImage) -> Mapping[str, str]:
    """The resource's settings so far. Refused if there is no such resource."""
    match resource:
        case TopicResource(""):
            raise InvalidRequest("Default topic resources are not allowed.")
        case TopicResource(name):
            check_name(name)
            if name not in image.topics:
                raise UnknownTopic(f"The topic '{name}' does not exist.")
            return image.topic_configs.get(name, {})
        case BrokerResource(None):
            return image.default_broker_config
        case BrokerResource(broker):
            assert broker is not None
            return image.broker_configs.get(broker, {})
        case GroupResource(""):
            raise InvalidRequest("Default group resources are not allowed.")
        case GroupResource(name):
            return image.group_configs.get(name, {})
        case ClientMetricsResource(""):
            raise InvalidRequest("Subscription name can't be empty")
        case ClientMetricsResource(name):
            return image.client_metrics.get(name, {})
        case ClientResource(entity):
            return image.client_configs.get(entity, {})


def altered(
    before: Mapping[str, str], resource: ConfigResource, alterations: Sequence[ConfigAlteration]
) -> dict[str, str]:
    """The settings after the alterations, not yet checked as a whole."""
    check_once(each.name for each in alterations)
    known = _declared(resource)
    after = dict(before)
    for each in alterations:
        if each.operation is AlterOperation.DELETE:
            after.pop(each.name, None)
        elif each.value is None:
            raise InvalidRequest(f"Null value not supported for : {each.name}")
        elif each.operation is AlterOperation.SET:
            after[each.name] = each.value
        else:
            after[each.name] = _list_altered(after.get(each.name), each, known.get(each.name))
    return after


def _declared(resource: ConfigResource) -> Mapping[str, Setting]:
    match resource:
        case TopicResource():
            return settings(TopicConfig)
        case BrokerResource():
            return broker_settings()
        case GroupResource():
            return {
                **settings(ConsumerGroupConfig),
                **settings(ShareGroupConfig),
                **settings(StreamsGroupConfig),
            }
        case ClientMetricsResource():
            return settings(ClientMetricsConfig)
        case ClientResource():
            return {}


def _list_altered(before: str | None, alteration: ConfigAlteration, setting: Setting | None) -> str:
    """A list setting with items appended or removed; an unset one starts at its default."""
    if setting is None or setting.kind is not ConfigType.LIST:
        raise InvalidConfig(
            f"Can't {alteration.operation.name} to key {alteration.name} because its type is not "
            "LIST."
        )
    text = before if before is not None else render(setting.default)
    items = dict.fromkeys(_split(text or ""))
    named = _split(alteration.value or "")
    if alteration.operation is AlterOperation.APPEND:
        items |= dict.fromkeys(named)
    else:
        items = {item: None for item in items if item not in named}
    return ",".join(items)


def _split(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def check_once(names: Iterable[str]) -> None:
    listed = list(names)
    if len(set(listed)) < len(listed):
        raise InvalidRequest("Error due to duplicate config keys")


def checked(
    resource: ConfigResource, after: Mapping[str, str | None], layers: BrokerLayers
) -> dict[str, str]:
    """The new settings, if they are valid. `layers` are the affected broker's current ones."""
    if isinstance(resource, TopicResource):
        if resource.name in COMPACTED_TOPICS:
            _check_compacted(resource.name, after)
        return checked_configs(after, layers)
    given = {name: text for name, text in after.items() if text is not None}
    if isinstance(resource, GroupResource):
        return _checked_group(given, layers)
    if isinstance(resource, ClientMetricsResource):
        return _checked_subscription(given)
    if isinstance(resource, ClientResource):
        return given
    fixed = [name for name in given if _update(name) is Update.READ_ONLY]
    if fixed:
        raise InvalidRequest(
            f"Cannot update these configs dynamically: [{', '.join(sorted(fixed))}]"
        )
    bare = [name for name in given if name in settings(SecurityConfig)]
    if bare:
        raise InvalidRequest(
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: [{', '.join(sorted(bare))}]"
        )
    before = layers
    if resource.id is None:
        own = [name for name in given if _update(name) is Update.PER_BROKER]
        if own:
            raise InvalidRequest(f"each broker has its own {', '.join(sorted(own))}")
        layers = BrokerLayers(layers.static, given, layers.dynamic)
    else:
        layers = BrokerLayers(layers.static, layers.dynamic_default, given)
    try:
        for name in filter(is_secret, given):
            check_reference(name, given[name])
        broker_config(layers.texts())
        check_steps(before.texts(), layers.texts())
    except ConfigError as error:
        raise InvalidRequest(kafka_message(error)) from error
    return given


def _check_compacted(topic: str, after: Mapping[str, str | None]) -> None:
    """A coordinator keeps its state in this topic: deleting old records would lose live ids."""
    if after.get("cleanup.policy") != "compact":
        raise InvalidConfig(f"cleanup.policy of {topic} must stay compact")


def _checked_group(given: dict[str, str], layers: BrokerLayers) -> dict[str, str]:
    try:
        share = {name: text for name, text in given.items() if name.startswith(PREFIXES)}
        streams = {name: text for name, text in given.items() if name.startswith("streams.")}
        others = {
            name: text for name, text in given.items() if name not in share and name not in streams
        }
        check_group_config(others, load(GroupConfig, layers.texts()))
        check_share_config(share, load(ShareConfig, layers.texts()))
        check_streams_config(streams, load(StreamsConfig, layers.texts()))
    except ConfigError as error:
        raise InvalidConfig(kafka_message(error)) from error
    return given


def _checked_subscription(given: dict[str, str]) -> dict[str, str]:
    try:
        for expression in patterns(check_client_metrics(given)).values():
            matching(expression, ())
    except ConfigError as error:
        raise InvalidRequest(kafka_message(error)) from error
    except InvalidRegularExpression as error:
        raise InvalidRequest(f"Illegal client matching pattern: {error}") from error
    return given


def _update(name: str) -> Update | None:
    """None for undeclared names, which are accepted: plug-ins and listeners have their own."""
    setting = declared_setting(name)
    return None if setting is None else setting.update
