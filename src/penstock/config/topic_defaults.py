"""Topic defaults from broker settings, such as `log.segment.bytes` for `segment.bytes`.

These broker settings are derived from the synonyms in `TopicConfig`, not declared again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from penstock.config.setting import BrokerSynonym, Setting, Update, build, parse, settings
from penstock.config.storage import StorageConfig
from penstock.config.topic import HOUR_MS, MINUTE_MS, TopicConfig
from penstock.config.value import ConfigType, Value

_UNITS = {MINUTE_MS: ", in minutes", HOUR_MS: ", in hours"}


@cache
def synonym_settings() -> Mapping[str, Setting]:
    """The broker settings that exist only as topic defaults, by name."""
    own = settings(
        StorageConfig
    )  # excludes the flush scheduler's interval, which is declared there
    return {
        synonym.name: _broker_level(each, index)
        for each in settings(TopicConfig).values()
        for index, synonym in enumerate(each.synonyms)
        if synonym.name not in own
    }


def topic_defaults(texts: Mapping[str, str]) -> TopicConfig:
    """The topic defaults of a broker with these settings; other names are ignored."""
    return build(TopicConfig, dict(_given(texts)))


def _given(texts: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    known = {**settings(StorageConfig), **synonym_settings()}
    for each in settings(TopicConfig).values():
        # By precedence: log.retention.ms before log.retention.hours.
        for synonym in each.synonyms:
            if synonym.name in texts:
                value = parse(known[synonym.name], texts[synonym.name])
                yield each.name, _in_topic_units(value, synonym)
                break


def _in_topic_units(value: Value, synonym: BrokerSynonym) -> Value:
    if synonym.factor == 1 or not isinstance(value, int):
        return value
    return value * synonym.factor if value >= 0 else -1  # "forever" has no unit


def _broker_level(topic: Setting, index: int) -> Setting:
    """The broker setting for a synonym. The last synonym has the default, and only the first can
    change at run time.
    """
    name, factor = topic.synonyms[index]
    last = index == len(topic.synonyms) - 1
    scaled = isinstance(topic.default, int) and factor > 1
    default = (
        topic.default // factor if scaled and isinstance(topic.default, int) else topic.default
    )
    return replace(
        topic,
        name=name,
        kind=ConfigType.INT if scaled else topic.kind,
        default=default if last else None,
        doc=f"Default of the topic setting `{topic.name}`{_UNITS.get(factor, '')}. {topic.doc}",
        update=Update.READ_ONLY if index else Update.CLUSTER_WIDE,
        synonyms=(),
    )
