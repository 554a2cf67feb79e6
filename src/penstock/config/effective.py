"""Which of several layers gives a setting its value, and what the others would have given.

A broker's settings come from four layers, nearest first: altered for this broker, altered for all
brokers, given at start, declared default. A topic's or a group's own settings lie above these.
Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from penstock.config.broker import broker_settings
from penstock.config.consumer_group import ConsumerGroupConfig, effective_group_config
from penstock.config.group import GroupConfig
from penstock.config.setting import Setting, attribute, load, parse, settings
from penstock.config.topic import TopicConfig, topic_config
from penstock.config.topic_defaults import topic_defaults
from penstock.config.value import Kind, render

Texts = Mapping[str, str]


class ConfigSource(IntEnum):
    """Where a value comes from, numbered as DescribeConfigs sends it."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    DYNAMIC_GROUP = 8


class ConfigSynonym(NamedTuple):
    """One layer's value, and the name that it has there."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A setting with its effective value; `synonyms` begin with the one that wins."""

    name: str
    value: str | None
    source: ConfigSource
    synonyms: tuple[ConfigSynonym, ...]
    setting: Setting | None
    """None if nobody declares it: then it may be a secret, and is shown as one."""


@dataclass(frozen=True, slots=True)
class BrokerLayers:
    """What a broker was told by name, in each of its layers."""

    static: Texts = field(default_factory=dict)
    dynamic_default: Texts = field(default_factory=dict)
    dynamic: Texts = field(default_factory=dict)

    def texts(self) -> dict[str, str]:
        """What holds by name, to be parsed by `broker_config`."""
        return {**self.static, **self.dynamic_default, **self.dynamic}


def effective_topic_config(overrides: Texts, layers: BrokerLayers) -> TopicConfig:
    """A topic's settings on a broker with these layers."""
    return topic_config(overrides, topic_defaults(layers.texts()))


def topic_entries(overrides: Texts, layers: BrokerLayers) -> Iterator[ConfigEntry]:
    """Every topic setting, in the order of its declaration."""
    config = effective_topic_config(overrides, layers)
    for name, setting in settings(TopicConfig).items():
        found = list(_broker_synonyms([each.name for each in setting.synonyms], layers))
        if name in overrides:
            own = _shown(setting, overrides[name])
            found.insert(0, ConfigSynonym(name, own, ConfigSource.TOPIC))
        value = render(getattr(config, name.replace(".", "_")))
        yield _entry(name, value, found, setting)


def group_entries(overrides: Texts, layers: BrokerLayers) -> Iterator[ConfigEntry]:
    """Every setting that a group may have of its own, as it holds for this one."""
    config = effective_group_config(overrides, load(GroupConfig, layers.texts()))
    for name, setting in settings(ConsumerGroupConfig).items():
        found = list(_broker_synonyms([each.name for each in setting.synonyms], layers))
        if name in overrides:
            own = _shown(setting, overrides[name])
            found.insert(0, ConfigSynonym(name, own, ConfigSource.DYNAMIC_GROUP))
        yield _entry(name, render(getattr(config, attribute(name))), found, setting)


def broker_entries(layers: BrokerLayers) -> Iterator[ConfigEntry]:
    """Every setting of a broker, and what was altered under names that nobody declares."""
    known, texts = broker_settings(), layers.texts()
    for name, setting in known.items():
        text = texts.get(name)
        value = _shown(setting, text) if text is not None else _shown_default(setting)
        yield _entry(name, value, list(_broker_synonyms(_family(name), layers)), setting)
    for name in (*layers.dynamic, *(set(layers.dynamic_default) - set(layers.dynamic))):
        if name not in known:
            yield _entry(name, None, list(_broker_synonyms([name], layers)), None)


def broker_default_entries(layers: BrokerLayers) -> Iterator[ConfigEntry]:
    """What was altered for all brokers, and nothing else."""
    for name, text in layers.dynamic_default.items():
        setting = broker_settings().get(name)
        value = _shown(setting, text)
        yield _entry(
            name, value, [ConfigSynonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER)], setting
        )


def _entry(
    name: str, value: str | None, synonyms: list[ConfigSynonym], setting: Setting | None
) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigEntry(name, value, source, tuple(synonyms), setting)


def _family(name: str) -> list[str]:
    """A broker setting with those of the same meaning in other units, nearest first."""
    for each in settings(TopicConfig).values():
        names = [synonym.name for synonym in each.synonyms]
        if len(names) > 1 and name in names:
            return names[names.index(name) :]
    return [name]


def _broker_synonyms(names: list[str], layers: BrokerLayers) -> Iterator[ConfigSynonym]:
    """Layer by layer. Kafka lists none before the setting's nearest name: so do we."""
    found = [
        ConfigSynonym(name, _shown(broker_settings().get(name), texts[name]), source)
        for source, texts in (
            (ConfigSource.DYNAMIC_BROKER, layers.dynamic),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, layers.dynamic_default),
            (ConfigSource.STATIC_BROKER, layers.static),
        )
        for name in names
        if name in texts
    ]
    for name in names:
        setting = broker_settings().get(name)
        if setting is not None and setting.default is not None:
            found.append(ConfigSynonym(name, _shown_default(setting), ConfigSource.DEFAULT))
    started = False
    for each in found:
        started = started or each.name == names[0]
        if started:
            yield each


def _shown(setting: Setting | None, text: str) -> str | None:
    """The text as Kafka would print the value it means; secrets are not shown."""
    if setting is None or setting.kind is Kind.PASSWORD:
        return None
    return render(parse(setting, text))


def _shown_default(setting: Setting) -> str | None:
    return None if setting.sensitive else render(setting.default)
