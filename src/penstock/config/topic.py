"""Topic settings: Kafka 4.3's, with its defaults and ranges.

Each names the broker settings that give it its default, by precedence; the broker settings with
those names are derived from these lines (`penstock.config.topic_defaults`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar, Unpack

from penstock.config.delay_route import (
    DEFAULT_BACKOFF,
    DELAY_BY,
    DELAY_MAX_MS,
    DELAY_MS,
    DELAY_TO,
    DLQ_TOPIC,
    RETRY_BACKOFF,
    RETRY_MAX_ATTEMPTS,
    RETRY_TO,
    ROUTE_SETTINGS,
    route_of,
)
from penstock.config.setting import (
    BrokerSynonym,
    Form,
    Traits,
    Update,
    attribute,
    load,
    setting,
    settings,
)
from penstock.config.value import LONG_MAX, ConfigType
from penstock.errors import ConfigError

T = TypeVar("T")
LONG = ConfigType.LONG

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 86_400_000
MIB = 1 << 20

CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

THROTTLED = Form(
    r"\*|([0-9]+:[0-9]+)(,[0-9]+:[0-9]+)*|",
    "* or a comma-separated list of partition:broker",
)


def topic(
    name: str, default: T, doc: str, *broker: str | BrokerSynonym, **traits: Unpack[Traits]
) -> T:
    """A topic setting with its broker synonyms; all topic settings can be altered at run time."""
    synonyms = tuple(
        each if isinstance(each, BrokerSynonym) else BrokerSynonym(each) for each in broker
    )
    traits |= {"synonyms": synonyms, "update": Update.CLUSTER_WIDE}
    return setting(name, default, doc, **traits)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """What may be set per topic."""

    cleanup_policy: tuple[str, ...] = topic(
        "cleanup.policy",
        ("delete",),
        "How old records are removed: delete drops whole segments past retention, compact keeps "
        "the last record of each key, an empty list keeps everything.",
        "log.cleanup.policy",
        choices=("compact", "delete"),
    )
    compression_type: str = topic(
        "compression.type",
        "producer",
        "Codec of stored batches; producer keeps the one they came with.",
        "compression.type",
        choices=CODECS,
    )
    compression_gzip_level: int = topic(
        "compression.gzip.level",
        -1,
        "Level when the broker compresses with gzip; -1 is the library's own.",
        "compression.gzip.level",
        low=1,
        high=9,
        also=-1,
    )
    compression_lz4_level: int = topic(
        "compression.lz4.level",
        9,
        "Level when the broker compresses with lz4.",
        "compression.lz4.level",
        low=1,
        high=17,
    )
    compression_zstd_level: int = topic(
        "compression.zstd.level",
        3,
        "Level when the broker compresses with zstd.",
        "compression.zstd.level",
        low=-131_072,
        high=22,
    )
    errors_deadletterqueue_group_enable: bool = topic(
        "errors.deadletterqueue.group.enable",
        False,
        "Whether share groups may write dead letters to this topic.",
    )
    delete_retention_ms: int = topic(
        "delete.retention.ms",
        DAY_MS,
        "How long compaction keeps a tombstone, so that slow consumers still see the deletion.",
        "log.cleaner.delete.retention.ms",
        kind=LONG,
        low=0,
    )
    file_delete_delay_ms: int = topic(
        "file.delete.delay.ms",
        MINUTE_MS,
        "How long a dropped segment's files stay on disk, renamed, before they are removed.",
        "log.segment.delete.delay.ms",
        kind=LONG,
        low=0,
    )
    flush_messages: int = topic(
        "flush.messages",
        LONG_MAX,
        "Force an fsync after this many records; the default leaves it to the system.",
        "log.flush.interval.messages",
        kind=LONG,
        low=1,
    )
    flush_ms: int = topic(
        "flush.ms",
        LONG_MAX,
        "Force an fsync when a record has waited this long; the default leaves it to the system.",
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
        kind=LONG,
        low=0,
    )
    follower_replication_throttled_replicas: tuple[str, ...] = topic(
        "follower.replication.throttled.replicas",
        (),
        "Replicas whose fetching from the leader is throttled: partition:broker pairs, or *.",
        form=THROTTLED,
    )
    index_interval_bytes: int = topic(
        "index.interval.bytes",
        4096,
        "Bytes of log between two entries of the offset index.",
        "log.index.interval.bytes",
        low=0,
    )
    leader_replication_throttled_replicas: tuple[str, ...] = topic(
        "leader.replication.throttled.replicas",
        (),
        "Replicas whose serving to followers is throttled: partition:broker pairs, or *.",
        form=THROTTLED,
    )
    local_retention_bytes: int = topic(
        "local.retention.bytes",
        -2,
        "Accepted, without effect: tiered storage is not offered.",
        "log.local.retention.bytes",
        kind=LONG,
        low=-2,
    )
    local_retention_ms: int = topic(
        "local.retention.ms",
        -2,
        "Accepted, without effect: tiered storage is not offered.",
        "log.local.retention.ms",
        kind=LONG,
        low=-2,
    )
    max_compaction_lag_ms: int = topic(
        "max.compaction.lag.ms",
        LONG_MAX,
        "Compact at the latest when a record is this old, however clean the log is.",
        "log.cleaner.max.compaction.lag.ms",
        kind=LONG,
        low=1,
    )
    max_message_bytes: int = topic(
        "max.message.bytes",
        MIB + 12,
        "Largest batch accepted, after compression.",
        "message.max.bytes",
        low=0,
    )
    message_timestamp_after_max_ms: int = topic(
        "message.timestamp.after.max.ms",
        HOUR_MS,
        "How far a record's create time may be ahead of the broker's clock.",
        "log.message.timestamp.after.max.ms",
        kind=LONG,
        low=0,
    )
    message_timestamp_before_max_ms: int = topic(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        "How far a record's create time may be behind the broker's clock.",
        "log.message.timestamp.before.max.ms",
        kind=LONG,
        low=0,
    )
    message_timestamp_type: str = topic(
        "message.timestamp.type",
        "CreateTime",
        "Whose clock stamps records: the producer's (CreateTime) or the broker's (LogAppendTime).",
        "log.message.timestamp.type",
        choices=("CreateTime", "LogAppendTime"),
    )
    min_cleanable_dirty_ratio: float = topic(
        "min.cleanable.dirty.ratio",
        0.5,
        "Compact once this share of the log is not yet compacted.",
        "log.cleaner.min.cleanable.ratio",
        low=0,
        high=1,
    )
    min_compaction_lag_ms: int = topic(
        "min.compaction.lag.ms",
        0,
        "Leave records younger than this out of compaction.",
        "log.cleaner.min.compaction.lag.ms",
        kind=LONG,
        low=0,
    )
    min_insync_replicas: int = topic(
        "min.insync.replicas",
        1,
        "With fewer in-sync replicas, writes with acks=all are rejected.",
        "min.insync.replicas",
        low=1,
    )
    preallocate: bool = topic(
        "preallocate",
        False,
        "Accepted, without effect: a segment's file grows as it is written.",
        "log.preallocate",
    )
    remote_log_copy_disable: bool = topic(
        "remote.log.copy.disable",
        False,
        "Accepted, without effect: tiered storage is not offered.",
    )
    remote_log_delete_on_disable: bool = topic(
        "remote.log.delete.on.disable",
        False,
        "Accepted, without effect: tiered storage is not offered.",
    )
    remote_storage_enable: bool = topic(
        "remote.storage.enable",
        False,
        "Only false: tiered storage is not offered.",
    )
    retention_bytes: int = topic(
        "retention.bytes",
        -1,
        "Drop the oldest segments of a partition beyond this size; -1 keeps any size.",
        "log.retention.bytes",
        kind=LONG,
    )
    retention_ms: int = topic(
        "retention.ms",
        7 * DAY_MS,
        "Drop segments whose newest record is older than this; -1 keeps any age.",
        "log.retention.ms",
        BrokerSynonym("log.retention.minutes", MINUTE_MS),
        BrokerSynonym("log.retention.hours", HOUR_MS),
        kind=LONG,
        low=-1,
    )
    segment_bytes: int = topic(
        "segment.bytes",
        1 << 30,
        "Roll to a new segment before one passes this size.",
        "log.segment.bytes",
        low=MIB,
    )
    segment_index_bytes: int = topic(
        "segment.index.bytes",
        10 * MIB,
        "Largest size of a segment's index; a full one rolls the segment.",
        "log.index.size.max.bytes",
        low=4,
    )
    segment_jitter_ms: int = topic(
        "segment.jitter.ms",
        0,
        "Up to this much random time taken off segment.ms, so that segments do not roll together.",
        "log.roll.jitter.ms",
        BrokerSynonym("log.roll.jitter.hours", HOUR_MS),
        kind=LONG,
        low=0,
    )
    segment_ms: int = topic(
        "segment.ms",
        7 * DAY_MS,
        "Roll to a new segment after this time even if it is not full.",
        "log.roll.ms",
        BrokerSynonym("log.roll.hours", HOUR_MS),
        kind=LONG,
        low=1,
    )
    unclean_leader_election_enable: bool = topic(
        "unclean.leader.election.enable",
        False,
        "Elect a replica outside the ISR if no other is left: available, but may lose records.",
        "unclean.leader.election.enable",
    )

    penstock_delay_to: str = topic(
        DELAY_TO,
        "",
        "Makes this a delay topic: its records go to this topic when they are due.",
    )
    penstock_delay_ms: str = topic(
        DELAY_MS,
        "",
        "Of a delay topic: how long records wait that do not say when they are due, in "
        "milliseconds. Empty: not at all.",
    )
    penstock_delay_by: str = topic(
        DELAY_BY,
        "",
        "Of a delay topic: header, which is the default, or timestamp: records are due at their "
        "timestamps.",
    )
    penstock_delay_max_ms: str = topic(
        DELAY_MAX_MS,
        "",
        "Of a delay or retry topic: how long a record may ask to wait, in milliseconds; one that "
        "asks for longer is a dead letter. Empty: ten years in a delay topic; a day in a retry "
        "topic, or its back-off if that is longer.",
    )
    penstock_retry_to: str = topic(
        RETRY_TO,
        "",
        "Makes this a retry topic: its records go back to this topic after a back-off.",
    )
    penstock_retry_backoff: str = topic(
        RETRY_BACKOFF,
        "",
        "Of a retry topic: a delay for each attempt, or exponential(1s,2,10m,jitter=0.2). Empty: "
        f"{DEFAULT_BACKOFF}.",
    )
    penstock_retry_max_attempts: str = topic(
        RETRY_MAX_ATTEMPTS,
        "",
        "Of a retry topic: after so many attempts a record is a dead letter. Empty: as many as "
        "the back-off names, or four if it is exponential.",
    )
    penstock_dlq_topic: str = topic(
        DLQ_TOPIC,
        "",
        "Of a delay or retry topic: where its dead letters go. Empty: its name with .dlq.",
    )

    def codec_level(self, codec: str) -> int | None:
        """The level set for a codec; None, for an unchanged default, means the library's own."""
        level, default = {
            "gzip": (self.compression_gzip_level, -1),
            "lz4": (self.compression_lz4_level, 9),
            "zstd": (self.compression_zstd_level, 3),
        }.get(codec, (None, None))
        return None if level == default else level

    def check(self) -> None:
        """Refuse settings that contradict each other or are not supported."""
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConfigError(
                f"min.compaction.lag.ms ({self.min_compaction_lag_ms}) is greater than "
                f"max.compaction.lag.ms ({self.max_compaction_lag_ms})"
            )
        route_of("", {name: getattr(self, attribute(name)) for name in ROUTE_SETTINGS})
        if self.remote_storage_enable:
            # A Kafka broker without remote log storage rejects it too.
            raise ConfigError(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be "
                "configured with remote log storage."
            )


def topic_config(overrides: Mapping[str, str], defaults: TopicConfig | None = None) -> TopicConfig:
    """A topic's settings: its own texts over the broker's defaults."""
    for name in overrides:
        if name not in settings(TopicConfig):
            raise ConfigError(f"unknown topic config name: {name}")
    config = load(TopicConfig, overrides, defaults)
    config.check()
    return config
