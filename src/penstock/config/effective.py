"""Finds the layer that gives a setting its value, and the values in the other layers.

A broker's settings come from four layers, by precedence: altered for this broker, altered for all
brokers, set at start, declared default. A topic's or group's own settings take precedence over all.
Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from penstock.config.broker import broker_settings, declared_setting
from penstock.config.client_metrics import ClientMetricsConfig, client_metrics_config
from penstock.config.consumer_group import ConsumerGroupConfig, effective_group_config
from penstock.config.group import GroupConfig
from penstock.config.setting import Setting, attribute, load, parse, settings
from penstock.config.share import ShareConfig
from penstock.config.share_group import PREFIXES, ShareGroupConfig, effective_share_config
from penstock.config.stored import usable
from penstock.config.streams import StreamsConfig
from penstock.config.streams_group import StreamsGroupConfig, effective_streams_config
from penstock.config.topic import TopicConfig, topic_config
from penstock.config.topic_defaults import topic_defaults
from penstock.config.value import ConfigType, render

Texts = Mapping[str, str]

SHOWN_IF_SET = ("penstock.", "errors.deadletterqueue.")
"""Prefixes of topic settings that tools do not expect, ours and those of Kafka 4.4 (KIP-1191):
listed only if set.
"""


class EffectiveSource(IntEnum):
    """The source of a value, numbered as in DescribeConfigs."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    DYNAMIC_CLIENT_METRICS = 7
    DYNAMIC_GROUP = 8


class EffectiveSynonym(NamedTuple):
    """The value in one layer, and the setting's name in that layer."""

    name: str
    value: str | None
    source: EffectiveSource


class EffectiveConfig(NamedTuple):
    """A setting with its effective value; `synonyms` begin with the winning one."""

    name: str
    value: str | None
    source: EffectiveSource
    synonyms: tuple[EffectiveSynonym, ...]
    setting: Setting | None
    """None for an undeclared name; it may be a secret, so its value is hidden."""


@dataclass(frozen=True, slots=True)
class BrokerLayers:
    """A broker's settings by name, in each layer."""

    static: Texts = field(default_factory=dict)
    dynamic_default: Texts = field(default_factory=dict)
    dynamic: Texts = field(default_factory=dict)

    def texts(self) -> dict[str, str]:
        """The effective texts by name, for `broker_config` to parse."""
        return {**self.static, **self.dynamic_default, **self.dynamic}


def stored_layers(static: Texts, dynamic_default: Texts, dynamic: Texts) -> BrokerLayers:
    """The layers of a broker; unusable settings from the store are left out."""
    known = broker_settings()
    return BrokerLayers(static, usable(dynamic_default, known), usable(dynamic, known))


def checked_topic_config(overrides: Texts, layers: BrokerLayers) -> TopicConfig:
    """A topic's settings on a broker with these layers; raises if one is invalid."""
    return topic_config(overrides, topic_defaults(layers.texts()))


def effective_topic_config(overrides: Texts, layers: BrokerLayers) -> TopicConfig:
    """A topic's settings from the store, without unusable ones.

    A later broker default may contradict the topic's own settings. Both are used as they are.
    """
    given = usable(overrides, settings(TopicConfig))
    return load(TopicConfig, given, topic_defaults(layers.texts()))


def topic_entries(overrides: Texts, layers: BrokerLayers) -> Iterator[EffectiveConfig]:
    """All topic settings, in declaration order; those in `SHOWN_IF_SET` only if set, as
    Kafka has none.
    """
    overrides = usable(overrides, settings(TopicConfig))
    config = effective_topic_config(overrides, layers)
    for name, setting in settings(TopicConfig).items():
        if name.startswith(SHOWN_IF_SET) and name not in overrides:
            continue
        found = list(_broker_synonyms([each.name for each in setting.synonyms], layers))
        if name in overrides:
            own = _displayed(setting, overrides[name])
            found.insert(0, EffectiveSynonym(name, own, EffectiveSource.TOPIC))
        value = render(getattr(config, name.replace(".", "_")))
        yield _entry(name, value, found, setting)


def group_entries(overrides: Texts, layers: BrokerLayers) -> Iterator[EffectiveConfig]:
    """All group settings, with their effective values for this group."""
    overrides = usable(overrides, _group_settings())
    config = effective_group_config(overrides, load(GroupConfig, layers.texts()))
    share = effective_share_config(overrides, load(ShareConfig, layers.texts()))
    streams = effective_streams_config(overrides, load(StreamsConfig, layers.texts()))
    by_kind = {"consumer": config, "share": share, "streams": streams}
    for name, setting in _group_settings().items():
        found = list(_broker_synonyms([each.name for each in setting.synonyms], layers))
        if not setting.synonyms:
            default = _displayed_default(setting)
            found.append(EffectiveSynonym(name, default, EffectiveSource.DEFAULT))
        if name in overrides:
            own = _displayed(setting, overrides[name])
            found.insert(0, EffectiveSynonym(name, own, EffectiveSource.DYNAMIC_GROUP))
        kind = "share" if name.startswith(PREFIXES) else name.partition(".")[0]
        values = by_kind[kind]
        yield _entry(name, render(getattr(values, attribute(name))), found, setting)


def client_metrics_entries(overrides: Texts) -> Iterator[EffectiveConfig]:
    """All settings of a subscription, including those not set."""
    overrides = usable(overrides, settings(ClientMetricsConfig))
    config = client_metrics_config(overrides)
    for name, setting in settings(ClientMetricsConfig).items():
        value = render(getattr(config, attribute(name)))
        own = [EffectiveSynonym(name, value, EffectiveSource.DYNAMIC_CLIENT_METRICS)]
        yield _entry(name, value, own if name in overrides else [], setting)


def _group_settings() -> Mapping[str, Setting]:
    return {
        **settings(ConsumerGroupConfig),
        **settings(ShareGroupConfig),
        **settings(StreamsGroupConfig),
    }


def broker_entries(layers: BrokerLayers) -> Iterator[EffectiveConfig]:
    """All broker settings, and undeclared names that were altered."""
    known, texts = broker_settings(), layers.texts()
    for name, setting in known.items():
        text = texts.get(name)
        value = _displayed(setting, text) if text is not None else _displayed_default(setting)
        yield _entry(name, value, list(_broker_synonyms(_family(name), layers)), setting)
    for name in (*layers.dynamic, *(set(layers.dynamic_default) - set(layers.dynamic))):
        if name not in known:
            declared = declared_setting(name)
            value = _displayed(declared, texts[name])
            yield _entry(name, value, list(_broker_synonyms([name], layers)), declared)


def broker_default_entries(layers: BrokerLayers) -> Iterator[EffectiveConfig]:
    """The settings that were altered for all brokers."""
    for name, text in layers.dynamic_default.items():
        setting = broker_settings().get(name)
        value = _displayed(setting, text)
        yield _entry(
            name,
            value,
            [EffectiveSynonym(name, value, EffectiveSource.DYNAMIC_DEFAULT_BROKER)],
            setting,
        )


def _entry(
    name: str, value: str | None, synonyms: list[EffectiveSynonym], setting: Setting | None
) -> EffectiveConfig:
    source = synonyms[0].source if synonyms else EffectiveSource.DEFAULT
    return EffectiveConfig(name, value, source, tuple(synonyms), setting)


def _family(name: str) -> list[str]:
    """A broker setting's name, then its synonyms in other units, by precedence."""
    for each in settings(TopicConfig).values():
        names = [synonym.name for synonym in each.synonyms]
        if len(names) > 1 and name in names:
            return names[names.index(name) :]
    return [name]


def _broker_synonyms(names: list[str], layers: BrokerLayers) -> Iterator[EffectiveSynonym]:
    """Synonyms layer by layer, from the setting's own name on, as Kafka lists them."""
    found = [
        EffectiveSynonym(name, _displayed(declared_setting(name), texts[name]), source)
        for source, texts in (
            (EffectiveSource.DYNAMIC_BROKER, layers.dynamic),
            (EffectiveSource.DYNAMIC_DEFAULT_BROKER, layers.dynamic_default),
            (EffectiveSource.STATIC_BROKER, layers.static),
        )
        for name in names
        if name in texts
    ]
    for name in names:
        setting = broker_settings().get(name)
        if setting is not None and setting.default is not None:
            found.append(
                EffectiveSynonym(name, _displayed_default(setting), EffectiveSource.DEFAULT)
            )
    started = False
    for each in found:
        started = started or each.name == names[0]
        if started:
            yield each


def _displayed(setting: Setting | None, text: str) -> str | None:
    """The value in Kafka's text form; None for secrets."""
    if setting is None or setting.kind is ConfigType.PASSWORD:
        return None
    return render(parse(setting, text))


def _displayed_default(setting: Setting) -> str | None:
    return None if setting.sensitive else render(setting.default)
