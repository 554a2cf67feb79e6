"""Settings of consumer groups of both protocols, and of committed offsets."""

from dataclasses import dataclass

from penstock.config.setting import Update, attribute, setting
from penstock.config.value import INT_MAX, ConfigType
from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Consumer groups of both protocols, and their committed offsets."""

    group_min_session_timeout_ms: int = setting(
        "group.min.session.timeout.ms",
        6000,
        "Shortest session timeout that a classic member may request.",
    )
    group_max_session_timeout_ms: int = setting(
        "group.max.session.timeout.ms",
        1_800_000,
        "Longest session timeout that a classic member may request.",
    )
    group_initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms",
        3000,
        "How long an empty group's first rebalance waits for more members.",
    )
    group_max_size: int = setting(
        "group.max.size",
        INT_MAX,
        "Members a classic group may have.",
        low=1,
    )
    group_coordinator_rebalance_protocols: tuple[str, ...] = setting(
        "group.coordinator.rebalance.protocols",
        ("classic", "consumer", "streams"),
        "Group protocols served. Streams groups also need the feature `streams.version`; share "
        "groups follow `share.version` alone.",
        choices=("consumer", "classic", "share", "streams"),
    )
    group_coordinator_append_linger_ms: int = setting(
        "group.coordinator.append.linger.ms",
        -1,
        "Accepted, without effect: records are written at once, and all requests that wait for "
        "a flush share it.",
        low=-1,
    )
    group_coordinator_cached_buffer_max_bytes: int = setting(
        "group.coordinator.cached.buffer.max.bytes",
        1_048_588,
        "Accepted, without effect: the coordinator keeps no write buffer.",
        low=524_288,
        update=Update.CLUSTER_WIDE,
    )
    group_coordinator_threads: int = setting(
        "group.coordinator.threads",
        4,
        "Accepted, without effect: coordinators run in the event loop.",
        low=1,
    )
    group_coordinator_background_threads: int = setting(
        "group.coordinator.background.threads",
        2,
        "Accepted, without effect: coordinators run in the event loop.",
        low=1,
    )
    group_consumer_session_timeout_ms: int = setting(
        "group.consumer.session.timeout.ms",
        45_000,
        "Session timeout of members of the consumer protocol.",
        low=1,
    )
    group_consumer_min_session_timeout_ms: int = setting(
        "group.consumer.min.session.timeout.ms",
        45_000,
        "Least value a group may set for its session timeout.",
        low=1,
    )
    group_consumer_max_session_timeout_ms: int = setting(
        "group.consumer.max.session.timeout.ms",
        60_000,
        "Greatest value a group may set for its session timeout.",
        low=1,
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        "group.consumer.heartbeat.interval.ms",
        5000,
        "Heartbeat interval of members of the consumer protocol.",
        low=1,
    )
    group_consumer_min_heartbeat_interval_ms: int = setting(
        "group.consumer.min.heartbeat.interval.ms",
        5000,
        "Least value a group may set for its heartbeat interval.",
        low=1,
    )
    group_consumer_max_heartbeat_interval_ms: int = setting(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        "Greatest value a group may set for its heartbeat interval.",
        low=1,
    )
    group_consumer_assignment_interval_ms: int = setting(
        "group.consumer.assignment.interval.ms",
        1000,
        "Least time between two assignments of a group.",
        low=0,
        update=Update.CLUSTER_WIDE,
    )
    group_consumer_min_assignment_interval_ms: int = setting(
        "group.consumer.min.assignment.interval.ms",
        0,
        "Least value a group may set for its assignment interval.",
        low=0,
    )
    group_consumer_max_assignment_interval_ms: int = setting(
        "group.consumer.max.assignment.interval.ms",
        15_000,
        "Greatest value a group may set for its assignment interval.",
        low=0,
    )
    group_consumer_max_size: int = setting(
        "group.consumer.max.size",
        INT_MAX,
        "Members a group of the consumer protocol may have.",
        low=1,
    )
    group_consumer_assignors: tuple[str, ...] = setting(
        "group.consumer.assignors",
        ("uniform", "range"),
        "Assignors of the consumer protocol: `uniform`, `range`, or `package.module:name` of one "
        "in Python; the first is the default.",
    )
    group_consumer_migration_policy: str = setting(
        "group.consumer.migration.policy",
        "bidirectional",
        "Whether a group may move between the classic and the consumer protocol while it runs.",
        choices=("disabled", "downgrade", "upgrade", "bidirectional"),
        any_case=True,
    )
    group_consumer_regex_refresh_interval_ms: int = setting(
        "group.consumer.regex.refresh.interval.ms",
        600_000,
        "How often topics are matched again against regular expression subscriptions; new topics "
        "are noticed at once.",
        low=10_000,
    )
    offset_metadata_max_bytes: int = setting(
        "offset.metadata.max.bytes",
        4096,
        "Longest metadata that a client may store with a committed offset.",
    )
    offsets_commit_timeout_ms: int = setting(
        "offsets.commit.timeout.ms",
        5000,
        "How long a commit may wait for its replicas.",
        low=1,
    )
    offsets_commit_required_acks: int = setting(
        "offsets.commit.required.acks",
        -1,
        "Accepted, without effect: commits always wait for all in-sync replicas.",
        kind=ConfigType.SHORT,
    )
    offsets_load_buffer_size: int = setting(
        "offsets.load.buffer.size",
        5_242_880,
        "Accepted, without effect: a coordinator reads its groups in slices of 64 KB, "
        "and serves in between.",
        low=1,
    )
    offsets_retention_minutes: int = setting(
        "offsets.retention.minutes",
        10_080,
        "Forget the offsets of a group that is empty this long.",
        low=1,
    )
    offsets_retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often such offsets are expired.",
        kind=ConfigType.LONG,
        low=1,
    )
    offsets_topic_num_partitions: int = setting(
        "offsets.topic.num.partitions",
        50,
        "Partitions of `__consumer_offsets`; not to be changed later.",
        low=1,
    )
    offsets_topic_replication_factor: int = setting(
        "offsets.topic.replication.factor",
        3,
        "Replicas of `__consumer_offsets`; while not set, a smaller cluster uses as many as it "
        "has brokers.",
        kind=ConfigType.SHORT,
        low=1,
    )
    offsets_topic_segment_bytes: int = setting(
        "offsets.topic.segment.bytes",
        104_857_600,
        "Segment size of `__consumer_offsets`.",
        low=1,
    )
    offsets_topic_compression_codec: int = setting(
        "offsets.topic.compression.codec",
        0,
        "Compression of `__consumer_offsets`: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        low=0,
        high=4,
    )

    def __post_init__(self) -> None:
        if "classic" not in self.group_coordinator_rebalance_protocols:
            raise ConfigError(
                "group.coordinator.rebalance.protocols must name classic: it cannot be switched off"
            )
        for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
            least, value, greatest = (
                getattr(self, attribute(f"group.consumer.{bound}{what}"))
                for bound in ("min.", "", "max.")
            )
            if not least <= value <= greatest:
                raise ConfigError(
                    f"group.consumer.{what} ({value}) is outside its own minimum and maximum "
                    f"({least} to {greatest})"
                )
        if self.group_consumer_heartbeat_interval_ms >= self.group_consumer_session_timeout_ms:
            raise ConfigError(
                f"group.consumer.heartbeat.interval.ms "
                f"({self.group_consumer_heartbeat_interval_ms}) is not less than "
                f"group.consumer.session.timeout.ms ({self.group_consumer_session_timeout_ms})"
            )
