"""Which partitions a source reads: by topic names, by a pattern, or one by one."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from penstock.client.metadata import TopicMetadata
from penstock.errors import ConfigError
from penstock.spark.options import Options
from penstock.types import TopicPartition

_WAYS: Final = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class SubscribedTopics:
    """All partitions of these topics, also those added later."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """All partitions of the topics whose whole name matches, except internal topics."""

    text: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """Only these partitions."""

    partitions: tuple[TopicPartition, ...]


Subscription: TypeAlias = SubscribedTopics | Pattern | Assigned


def read_subscription(options: Options) -> Subscription:
    given = [way for way in _WAYS if way in options]
    if len(given) != 1:
        found = "none" if not given else " and ".join(given)
        raise ConfigError(f"exactly one of {', '.join(_WAYS)} is needed, and {found} is given")
    text = options.required(given[0])
    if given[0] == "subscribe":
        names = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
        if not names:
            raise ConfigError("option subscribe names no topic")
        return SubscribedTopics(names)
    if given[0] == "assign":
        return Assigned(_partitions(text))
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"option subscribePattern: {text!r}: {error}") from None
    return Pattern(text)


def wanted_names(subscription: Subscription) -> list[str] | None:
    """The topics to request from the cluster; None: all."""
    match subscription:
        case SubscribedTopics(names):
            return list(names)
        case Assigned(partitions):
            return list(dict.fromkeys(each.topic for each in partitions))
        case Pattern():
            return None


def covers(subscription: Subscription, topic_partition: TopicPartition) -> bool:
    """Whether the subscription means this partition, if it exists."""
    match subscription:
        case SubscribedTopics(names):
            return topic_partition.topic in names
        case Pattern(text):
            return re.fullmatch(text, topic_partition.topic) is not None
        case Assigned(partitions):
            return topic_partition in partitions


def subscribed(
    subscription: Subscription, topics: Mapping[str, TopicMetadata]
) -> tuple[list[TopicPartition], list[str]]:
    """The existing partitions in order, and what the subscription names that is missing."""
    match subscription:
        case SubscribedTopics(names):
            found = [name for name in names if name in topics]
            missing = [f"topic {name}" for name in names if name not in topics]
            return _all(found, topics), missing
        case Pattern(text):
            matching = re.compile(text).fullmatch
            names_ = [n for n in sorted(topics) if not topics[n].is_internal and matching(n)]
            return _all(names_, topics), []
        case Assigned(partitions):
            there = [
                each
                for each in partitions
                if each.topic in topics and each.partition in topics[each.topic].partitions
            ]
            return there, [f"partition {each}" for each in partitions if each not in there]


def _all(names: list[str], topics: Mapping[str, TopicMetadata]) -> list[TopicPartition]:
    return [TopicPartition(name, index) for name in names for index in topics[name].partitions]


def _partitions(text: str) -> tuple[TopicPartition, ...]:
    """From `{"topic": [0, 1]}`."""
    example = 'option assign must be JSON like {"topic": [0, 1]}'
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{example}: {error}") from None
    if not isinstance(parsed, dict) or not all(isinstance(each, list) for each in parsed.values()):
        raise ConfigError(example)
    found = [TopicPartition(topic, index) for topic, each in parsed.items() for index in each]
    for each in found:
        if type(each.partition) is not int or each.partition < 0:
            raise ConfigError(f"{example}: {each.partition!r} is not a partition")
    if not found:
        raise ConfigError("option assign names no partition")
    return tuple(dict.fromkeys(found))
