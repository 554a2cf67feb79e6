"""Settings that a single group of the consumer protocol may have (Kafka's group configs)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.config.group import GroupConfig
from penstock.config.setting import BrokerSynonym, attribute, load, setting, settings
from penstock.config.stored import usable
from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupConfig:
    """A group's own settings, within the broker's limits; the rest follows the broker."""

    consumer_session_timeout_ms: int = setting(
        "consumer.session.timeout.ms",
        45_000,
        "How long a member may be silent before it is considered dead.",
        low=1,
        synonyms=(BrokerSynonym("group.consumer.session.timeout.ms"),),
    )
    consumer_heartbeat_interval_ms: int = setting(
        "consumer.heartbeat.interval.ms",
        5000,
        "Heartbeat interval of members.",
        low=1,
        synonyms=(BrokerSynonym("group.consumer.heartbeat.interval.ms"),),
    )
    consumer_assignment_interval_ms: int = setting(
        "consumer.assignment.interval.ms",
        1000,
        "Least time between two assignments.",
        low=0,
        synonyms=(BrokerSynonym("group.consumer.assignment.interval.ms"),),
    )


def group_defaults(broker: GroupConfig) -> ConsumerGroupConfig:
    """The settings of a group without overrides."""
    return ConsumerGroupConfig(
        consumer_session_timeout_ms=broker.group_consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms=broker.group_consumer_heartbeat_interval_ms,
        consumer_assignment_interval_ms=broker.group_consumer_assignment_interval_ms,
    )


def effective_group_config(
    overrides: Mapping[str, str], broker: GroupConfig
) -> ConsumerGroupConfig:
    """A group's settings, clamped to the broker's limits, which may have been narrowed since."""
    usable_overrides = usable(overrides, settings(ConsumerGroupConfig))
    given = load(ConsumerGroupConfig, usable_overrides, group_defaults(broker))
    return replace(
        given,
        **{
            attribute(name): min(max(getattr(given, attribute(name)), least), greatest)
            for name, least, greatest in _limits(broker)
        },
    )


def check_group_config(overrides: Mapping[str, str], broker: GroupConfig) -> None:
    """Reject settings that a group cannot have on this broker."""
    unknown = sorted(overrides.keys() - settings(ConsumerGroupConfig).keys())
    if unknown:
        raise ConfigError(f"Unknown group config name: {unknown[0]}")
    given = load(ConsumerGroupConfig, overrides, group_defaults(broker))
    for name, least, greatest in _limits(broker):
        value = getattr(given, attribute(name))
        if name in overrides and not least <= value <= greatest:
            words, which = ("greater", "min") if value < least else ("less", "max")
            raise ConfigError(
                f"{name} must be {words} than or equal to group.{_bound(name, which)}"
            )
    if given.consumer_heartbeat_interval_ms >= given.consumer_session_timeout_ms:
        raise ConfigError(
            f"consumer.heartbeat.interval.ms ({given.consumer_heartbeat_interval_ms}) must be less "
            f"than consumer.session.timeout.ms ({given.consumer_session_timeout_ms})"
        )


def _limits(broker: GroupConfig) -> Iterator[tuple[str, int, int]]:
    for name in settings(ConsumerGroupConfig):
        least, greatest = (
            getattr(broker, attribute(f"group.{_bound(name, which)}")) for which in ("min", "max")
        )
        yield name, least, greatest


def _bound(name: str, which: str) -> str:
    """`consumer.session.timeout.ms` is bounded by `group.consumer.min.session.timeout.ms`."""
    return name.replace("consumer.", f"consumer.{which}.", 1)
