"""Settings of streams groups (KIP-1071)."""

from dataclasses import dataclass

from penstock.config.setting import Update, attribute, setting
from penstock.config.value import INT_MAX
from penstock.errors import ConfigError

BOUNDED = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
"""Settings that a group may override, between a minimum and a maximum of the broker."""


def bound(name: str, which: str) -> str:
    """`session.timeout.ms` is bounded by `group.streams.min.session.timeout.ms`."""
    return f"group.streams.{which}.{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsConfig:
    """Streams groups: Kafka Streams applications with `group.protocol=streams`."""

    group_streams_assignors: tuple[str, ...] = setting(
        "group.streams.assignors",
        ("sticky",),
        "Assignors of streams groups: `sticky`, or `package.module:name` of one in Python; the "
        "first is the default. In Kafka since 4.4.",
    )
    group_streams_session_timeout_ms: int = setting(
        "group.streams.session.timeout.ms", 45_000, "Session timeout of members.", low=1
    )
    group_streams_min_session_timeout_ms: int = setting(
        "group.streams.min.session.timeout.ms", 45_000, "Least value a group may set.", low=1
    )
    group_streams_max_session_timeout_ms: int = setting(
        "group.streams.max.session.timeout.ms", 60_000, "Greatest value a group may set.", low=1
    )
    group_streams_heartbeat_interval_ms: int = setting(
        "group.streams.heartbeat.interval.ms", 5000, "Heartbeat interval of members.", low=1
    )
    group_streams_min_heartbeat_interval_ms: int = setting(
        "group.streams.min.heartbeat.interval.ms", 5000, "Least value a group may set.", low=1
    )
    group_streams_max_heartbeat_interval_ms: int = setting(
        "group.streams.max.heartbeat.interval.ms", 15_000, "Greatest value a group may set.", low=1
    )
    group_streams_max_size: int = setting(
        "group.streams.max.size", INT_MAX, "Members a streams group may have.", low=1
    )
    group_streams_num_standby_replicas: int = setting(
        "group.streams.num.standby.replicas",
        0,
        "Copies of the state of each task, in other processes.",
        low=0,
    )
    group_streams_max_standby_replicas: int = setting(
        "group.streams.max.standby.replicas", 2, "Greatest value a group may set.", low=0
    )
    group_streams_initial_rebalance_delay_ms: int = setting(
        "group.streams.initial.rebalance.delay.ms",
        100,
        "How long the first members of an empty group wait for others. Kafka waits 3000: set that "
        "where many instances start at once and have much state.",
        low=0,
    )
    group_streams_assignment_interval_ms: int = setting(
        "group.streams.assignment.interval.ms",
        1000,
        "Least time between two assignments.",
        low=0,
        update=Update.CLUSTER_WIDE,
    )
    group_streams_min_assignment_interval_ms: int = setting(
        "group.streams.min.assignment.interval.ms", 0, "Least value a group may set.", low=0
    )
    group_streams_max_assignment_interval_ms: int = setting(
        "group.streams.max.assignment.interval.ms", 15_000, "Greatest value a group may set.", low=0
    )

    def __post_init__(self) -> None:
        for name in BOUNDED:
            least, value, greatest = (
                getattr(self, attribute(each))
                for each in (bound(name, "min"), f"group.streams.{name}", bound(name, "max"))
            )
            if not least <= value <= greatest:
                raise ConfigError(
                    f"group.streams.{name} ({value}) is outside its own minimum and maximum "
                    f"({least} to {greatest})"
                )
        if self.group_streams_heartbeat_interval_ms >= self.group_streams_session_timeout_ms:
            raise ConfigError(
                "group.streams.heartbeat.interval.ms "
                f"({self.group_streams_heartbeat_interval_ms}) is not less than "
                f"group.streams.session.timeout.ms ({self.group_streams_session_timeout_ms})"
            )
        if self.group_streams_num_standby_replicas > self.group_streams_max_standby_replicas:
            raise ConfigError(
                "group.streams.num.standby.replicas "
                f"({self.group_streams_num_standby_replicas}) is more than "
                f"group.streams.max.standby.replicas ({self.group_streams_max_standby_replicas})"
            )
