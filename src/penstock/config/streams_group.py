"""Settings that a single streams group may have (Kafka's group configs)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.config.setting import BrokerSynonym, attribute, load, setting, settings
from penstock.config.stored import usable
from penstock.config.streams import BOUNDED, StreamsConfig, bound
from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupConfig:
    """A streams group's own settings, within the broker's limits; the rest follows the broker."""

    streams_session_timeout_ms: int = setting(
        "streams.session.timeout.ms",
        45_000,
        "How long a member may be silent before it is considered dead.",
        low=1,
        synonyms=(BrokerSynonym("group.streams.session.timeout.ms"),),
    )
    streams_heartbeat_interval_ms: int = setting(
        "streams.heartbeat.interval.ms",
        5000,
        "Heartbeat interval of members.",
        low=1,
        synonyms=(BrokerSynonym("group.streams.heartbeat.interval.ms"),),
    )
    streams_num_standby_replicas: int = setting(
        "streams.num.standby.replicas",
        0,
        "Copies of the state of each task, in other processes.",
        low=0,
        synonyms=(BrokerSynonym("group.streams.num.standby.replicas"),),
    )
    streams_initial_rebalance_delay_ms: int = setting(
        "streams.initial.rebalance.delay.ms",
        100,
        "How long the first members of the empty group wait for others.",
        low=0,
        synonyms=(BrokerSynonym("group.streams.initial.rebalance.delay.ms"),),
    )
    streams_assignment_interval_ms: int = setting(
        "streams.assignment.interval.ms",
        1000,
        "Least time between two assignments.",
        low=0,
        synonyms=(BrokerSynonym("group.streams.assignment.interval.ms"),),
    )
    streams_assignor_name: str | None = setting(
        "streams.assignor.name",
        None,
        "One of `group.streams.assignors`, by its name; the first of them if not set. In Kafka "
        "since 4.4.",
    )


def streams_group_defaults(broker: StreamsConfig) -> StreamsGroupConfig:
    """The settings of a streams group without overrides."""
    return replace(
        StreamsGroupConfig(),
        **{
            attribute(name): getattr(broker, attribute(f"group.{name}"))
            for name, each in settings(StreamsGroupConfig).items()
            if each.synonyms
        },
    )


def effective_streams_config(
    overrides: Mapping[str, str], broker: StreamsConfig
) -> StreamsGroupConfig:
    """A group's settings, clamped to the broker's limits, which may have been narrowed since."""
    given = load(
        StreamsGroupConfig,
        usable(overrides, settings(StreamsGroupConfig)),
        streams_group_defaults(broker),
    )
    return replace(
        given,
        **{
            attribute(name): min(max(getattr(given, attribute(name)), least), greatest)
            for name, least, greatest, *_ in _limits(broker)
        },
    )


def check_streams_config(overrides: Mapping[str, str], broker: StreamsConfig) -> None:
    """Reject settings that a group cannot have on this broker."""
    unknown = sorted(overrides.keys() - settings(StreamsGroupConfig).keys())
    if unknown:
        raise ConfigError(f"Unknown group config name: {unknown[0]}")
    given = load(StreamsGroupConfig, overrides, streams_group_defaults(broker))
    for name, least, greatest, low_name, high_name in _limits(broker):
        value = getattr(given, attribute(name))
        if name in overrides and not least <= value <= greatest:
            words, limit = ("greater", low_name) if value < least else ("less", high_name)
            raise ConfigError(f"{name} must be {words} than or equal to {limit}")
    if given.streams_heartbeat_interval_ms >= given.streams_session_timeout_ms:
        raise ConfigError(
            "streams.session.timeout.ms must be greater than streams.heartbeat.interval.ms"
        )


def _limits(broker: StreamsConfig) -> Iterator[tuple[str, int, int, str, str]]:
    """The name of each limited setting, its limits, and the names of the limits."""
    for name in BOUNDED:
        low, high = bound(name, "min"), bound(name, "max")
        least, greatest = (getattr(broker, attribute(each)) for each in (low, high))
        yield f"streams.{name}", least, greatest, low, high
    most = "group.streams.max.standby.replicas"
    yield (
        "streams.num.standby.replicas",
        0,
        broker.group_streams_max_standby_replicas,
        "0",
        most,
    )
