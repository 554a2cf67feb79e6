"""Topic defaults that broker settings give, such as `log.segment.bytes` for `segment.bytes`.

These broker settings are not declared again: they follow from the synonyms in `TopicConfig`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from penstock.config.setting import Setting, Synonym, Update, build, parse, settings
from penstock.config.storage import StorageConfig
from penstock.config.topic import HOUR_MS, MINUTE_MS, TopicConfig
from penstock.config.value import Kind, Value

_UNITS = {MINUTE_MS: ", in minutes", HOUR_MS: ", in hours"}


@cache
def synonym_settings() -> Mapping[str, Setting]:
    """The broker settings that only exist to give topics their defaults, by name."""
    own = settings(StorageConfig)  # the flush scheduler's interval is a setting in its own right
    return {
        synonym.name: _broker_level(each, place)
        for each in settings(TopicConfig).values()
        for place, synonym in enumerate(each.synonyms)
        if synonym.name not in own
    }


def topic_defaults(texts: Mapping[str, str]) -> TopicConfig:
    """The defaults of topics on a broker whose settings are `texts`; other names are left."""
    return build(TopicConfig, dict(_given(texts)))


def _given(texts: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    known = {**settings(StorageConfig), **synonym_settings()}
    for each in settings(TopicConfig).values():
        # Nearest first: log.retention.ms goes before log.retention.hours.
        for synonym in each.synonyms:
            if synonym.name in texts:
                value = parse(known[synonym.name], texts[synonym.name])
                yield each.name, _in_topic_units(value, synonym)
                break


def _in_topic_units(value: Value, synonym: Synonym) -> Value:
    if synonym.factor == 1 or not isinstance(value, int):
        return value
    return value * synonym.factor if value >= 0 else -1  # "forever" has no unit


def _broker_level(topic: Setting, place: int) -> Setting:
    """Of several synonyms the last holds the default, and only the first changes while running."""
    name, factor = topic.synonyms[place]
    last = place == len(topic.synonyms) - 1
    scaled = isinstance(topic.default, int) and factor > 1
    default = (
        topic.default // factor if scaled and isinstance(topic.default, int) else topic.default
    )
    return replace(
        topic,
        name=name,
        kind=Kind.INT if scaled else topic.kind,
        default=default if last else None,
        doc=f"Default of the topic setting `{topic.name}`{_UNITS.get(factor, '')}. {topic.doc}",
        update=Update.READ_ONLY if place else Update.CLUSTER_WIDE,
        synonyms=(),
    )
