"""Settings of share groups (KIP-932), and of the topic with the state of their partitions."""

from dataclasses import dataclass

from penstock.config.setting import Update, attribute, setting
from penstock.config.value import ConfigType
from penstock.errors import ConfigError

BOUNDED = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "assignment.interval.ms",
    "delivery.count.limit",
    "record.lock.duration.ms",
    "partition.max.record.locks",
)
"""Settings that a group may override, between a minimum and a maximum of the broker."""


def bound(name: str, which: str) -> str:
    """`record.lock.duration.ms` is bounded by `group.share.min.record.lock.duration.ms`."""
    return f"group.share.{which}.{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareConfig:
    """Share groups, and the topic that keeps the state of their partitions."""

    group_share_assignors: tuple[str, ...] = setting(
        "group.share.assignors",
        ("simple",),
        "Accepted, without effect: there is only `simple`.",
        choices=("simple",),
    )
    group_share_session_timeout_ms: int = setting(
        "group.share.session.timeout.ms", 45_000, "Session timeout of members.", low=1
    )
    group_share_min_session_timeout_ms: int = setting(
        "group.share.min.session.timeout.ms", 45_000, "Least value a group may set.", low=1
    )
    group_share_max_session_timeout_ms: int = setting(
        "group.share.max.session.timeout.ms", 60_000, "Greatest value a group may set.", low=1
    )
    group_share_heartbeat_interval_ms: int = setting(
        "group.share.heartbeat.interval.ms", 5000, "Heartbeat interval of members.", low=1
    )
    group_share_min_heartbeat_interval_ms: int = setting(
        "group.share.min.heartbeat.interval.ms", 5000, "Least value a group may set.", low=1
    )
    group_share_max_heartbeat_interval_ms: int = setting(
        "group.share.max.heartbeat.interval.ms", 15_000, "Greatest value a group may set.", low=1
    )
    group_share_max_size: int = setting(
        "group.share.max.size", 200, "Members a share group may have.", low=1, high=1000
    )
    group_share_assignment_interval_ms: int = setting(
        "group.share.assignment.interval.ms",
        1000,
        "Least time between two assignments.",
        low=0,
        update=Update.CLUSTER_WIDE,
    )
    group_share_min_assignment_interval_ms: int = setting(
        "group.share.min.assignment.interval.ms", 0, "Least value a group may set.", low=0
    )
    group_share_max_assignment_interval_ms: int = setting(
        "group.share.max.assignment.interval.ms", 15_000, "Greatest value a group may set.", low=0
    )
    group_share_delivery_count_limit: int = setting(
        "group.share.delivery.count.limit", 5, "How often a record is delivered.", low=2, high=10
    )
    group_share_min_delivery_count_limit: int = setting(
        "group.share.min.delivery.count.limit", 2, "Least value a group may set.", low=2, high=5
    )
    group_share_max_delivery_count_limit: int = setting(
        "group.share.max.delivery.count.limit",
        10,
        "Greatest value a group may set.",
        low=5,
        high=25,
    )
    group_share_record_lock_duration_ms: int = setting(
        "group.share.record.lock.duration.ms",
        30_000,
        "How long a member has a record before it is delivered again.",
        low=1000,
        high=3_600_000,
    )
    group_share_min_record_lock_duration_ms: int = setting(
        "group.share.min.record.lock.duration.ms",
        15_000,
        "Least value a group may set.",
        low=1000,
        high=30_000,
    )
    group_share_max_record_lock_duration_ms: int = setting(
        "group.share.max.record.lock.duration.ms",
        60_000,
        "Greatest value a group may set.",
        low=30_000,
        high=3_600_000,
    )
    group_share_partition_max_record_locks: int = setting(
        "group.share.partition.max.record.locks",
        2000,
        "Records in flight per partition and group.",
        low=100,
        high=10_000,
    )
    group_share_min_partition_max_record_locks: int = setting(
        "group.share.min.partition.max.record.locks",
        100,
        "Least value a group may set.",
        low=100,
        high=2000,
    )
    group_share_max_partition_max_record_locks: int = setting(
        "group.share.max.partition.max.record.locks",
        4000,
        "Greatest value a group may set.",
        low=2000,
        high=10_000,
    )
    group_share_max_share_sessions: int = setting(
        "group.share.max.share.sessions", 2000, "Share sessions of a broker.", low=1
    )
    share_fetch_purgatory_purge_interval_requests: int = setting(
        "share.fetch.purgatory.purge.interval.requests",
        1000,
        "Accepted, without effect: requests that have been answered do not wait.",
    )
    share_coordinator_state_topic_num_partitions: int = setting(
        "share.coordinator.state.topic.num.partitions",
        50,
        "Partitions of `__share_group_state`; not to be changed later.",
        low=1,
    )
    share_coordinator_state_topic_replication_factor: int = setting(
        "share.coordinator.state.topic.replication.factor",
        3,
        "Replicas of `__share_group_state`; while not set, a smaller cluster uses as many as it "
        "has brokers.",
        kind=ConfigType.SHORT,
        low=1,
    )
    share_coordinator_state_topic_min_isr: int = setting(
        "share.coordinator.state.topic.min.isr",
        2,
        "`min.insync.replicas` of `__share_group_state`; while not set, at most its replicas.",
        kind=ConfigType.SHORT,
        low=1,
    )
    share_coordinator_state_topic_segment_bytes: int = setting(
        "share.coordinator.state.topic.segment.bytes",
        104_857_600,
        "Segment size of `__share_group_state`.",
        low=1,
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = setting(
        "share.coordinator.snapshot.update.records.per.snapshot",
        500,
        "Updates of a share-partition's state before it is written whole.",
        low=0,
        high=500,
    )
    share_coordinator_state_topic_prune_interval_ms: int = setting(
        "share.coordinator.state.topic.prune.interval.ms",
        300_000,
        "How often needless records of `__share_group_state` are deleted.",
        low=1,
    )
    share_coordinator_write_timeout_ms: int = setting(
        "share.coordinator.write.timeout.ms",
        5000,
        "How long a write of state may wait for its replicas.",
        low=1,
    )
    share_coordinator_load_buffer_size: int = setting(
        "share.coordinator.load.buffer.size",
        5_242_880,
        "Accepted, without effect: a coordinator reads its state in slices of 64 KB.",
        low=1,
    )
    share_coordinator_threads: int = setting(
        "share.coordinator.threads",
        1,
        "Accepted, without effect: coordinators run in the event loop.",
        low=1,
    )
    share_coordinator_append_linger_ms: int = setting(
        "share.coordinator.append.linger.ms",
        -1,
        "Accepted, without effect: records are written at once.",
        low=-1,
    )
    errors_deadletterqueue_auto_create_topics_enable: bool = setting(
        "errors.deadletterqueue.auto.create.topics.enable",
        False,
        "Whether a missing topic for dead letters of share groups is created.",
        update=Update.CLUSTER_WIDE,
    )
    errors_deadletterqueue_topic_name_prefix: str = setting(
        "errors.deadletterqueue.topic.name.prefix",
        "dlq.",
        "How the names of topics for dead letters of share groups begin.",
        update=Update.CLUSTER_WIDE,
    )

    def __post_init__(self) -> None:
        for name in BOUNDED:
            least, value, greatest = (
                getattr(self, attribute(each))
                for each in (bound(name, "min"), f"group.share.{name}", bound(name, "max"))
            )
            if not least <= value <= greatest:
                raise ConfigError(
                    f"group.share.{name} ({value}) is outside its own minimum and maximum "
                    f"({least} to {greatest})"
                )
        if self.group_share_heartbeat_interval_ms >= self.group_share_session_timeout_ms:
            raise ConfigError(
                f"group.share.heartbeat.interval.ms ({self.group_share_heartbeat_interval_ms}) is "
                f"not less than group.share.session.timeout.ms "
                f"({self.group_share_session_timeout_ms})"
            )
