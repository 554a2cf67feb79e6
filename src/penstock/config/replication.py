"""Settings of replication: how followers fetch, and when they count as in sync."""

from dataclasses import dataclass

from penstock.config.setting import Form, Update, setting
from penstock.config.value import LONG_MAX, ConfigType
from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationConfig:
    """How followers copy their leaders, and when they count as in sync."""

    replica_lag_time_max_ms: int = setting(
        "replica.lag.time.max.ms",
        30_000,
        "A follower that has not caught up for this long leaves the ISR.",
        kind=ConfigType.LONG,
    )
    replica_lag_max_messages: int | None = setting(
        "replica.lag.max.messages",
        None,
        "Legacy (before Kafka 0.9): a follower this many records behind leaves the ISR too; "
        "not set, only time counts.",
        kind=ConfigType.LONG,
        low=1,
    )
    replica_fetch_max_bytes: int = setting(
        "replica.fetch.max.bytes",
        1_048_576,
        "Bytes a follower requests per partition; a larger first batch is still returned whole.",
        low=0,
    )
    replica_fetch_min_bytes: int = setting(
        "replica.fetch.min.bytes",
        1,
        "Bytes a leader waits for before it answers a follower's fetch.",
    )
    replica_fetch_wait_max_ms: int = setting(
        "replica.fetch.wait.max.ms",
        500,
        "How long a leader may wait for them; must stay below `replica.lag.time.max.ms`.",
    )
    replica_fetch_response_max_bytes: int = setting(
        "replica.fetch.response.max.bytes",
        10_485_760,
        "Bytes a follower requests in one fetch, over all partitions.",
        low=0,
    )
    replica_fetch_backoff_ms: int = setting(
        "replica.fetch.backoff.ms",
        1000,
        "Longest backoff of a follower after a failed fetch.",
        low=0,
    )
    replica_high_watermark_checkpoint_interval_ms: int = setting(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "How often high watermarks are written to disk.",
        kind=ConfigType.LONG,
    )
    replica_socket_timeout_ms: int = setting(
        "replica.socket.timeout.ms",
        30_000,
        "How long a follower waits for its leader's response.",
    )
    replica_socket_receive_buffer_bytes: int = setting(
        "replica.socket.receive.buffer.bytes",
        65_536,
        "Accepted, without effect: the system sizes the buffers of a follower's connections.",
    )
    replica_selector_class: str | None = setting(
        "replica.selector.class",
        None,
        "Which replica a consumer should read: empty for the leader, a class named "
        "RackAwareReplicaSelector for one in its rack.",
        form=Form(
            r"|(.*\.)?(RackAwareReplicaSelector|LeaderSelector)",
            "empty, or a class named RackAwareReplicaSelector or LeaderSelector: other classes "
            "cannot be loaded",
        ),
    )
    num_replica_fetchers: int = setting(
        "num.replica.fetchers",
        1,
        "Fetchers a follower runs for each leader broker.",
        low=1,
        update=Update.CLUSTER_WIDE,
    )
    num_replica_alter_log_dirs_threads: int | None = setting(
        "num.replica.alter.log.dirs.threads",
        None,
        "Replicas moved between log directories at the same time; one per directory when not set.",
        kind=ConfigType.INT,
    )
    leader_replication_throttled_rate: int = setting(
        "leader.replication.throttled.rate",
        LONG_MAX,
        "Bytes a second that a leader gives to throttled replicas.",
        kind=ConfigType.LONG,
        low=0,
        update=Update.CLUSTER_WIDE,
    )
    follower_replication_throttled_rate: int = setting(
        "follower.replication.throttled.rate",
        LONG_MAX,
        "Bytes a second that throttled replicas fetch.",
        kind=ConfigType.LONG,
        low=0,
        update=Update.CLUSTER_WIDE,
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = setting(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG_MAX,
        "Bytes a second that moves between log directories may use.",
        kind=ConfigType.LONG,
        low=0,
        update=Update.CLUSTER_WIDE,
    )

    def __post_init__(self) -> None:
        # A leader may hold a fetch for this long, so neither of these timeouts may be shorter.
        for name, patience_ms in (
            ("replica.socket.timeout.ms", self.replica_socket_timeout_ms),
            ("replica.lag.time.max.ms", self.replica_lag_time_max_ms),
        ):
            if self.replica_fetch_wait_max_ms > patience_ms:
                raise ConfigError(
                    f"replica.fetch.wait.max.ms ({self.replica_fetch_wait_max_ms}) is greater "
                    f"than {name} ({patience_ms})"
                )
