"""Settings of the log store: flushing, checkpoints, retention and compaction."""

import sys
from dataclasses import dataclass

from penstock.config.setting import Update, setting
from penstock.config.value import LONG_MAX, ConfigType


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig:
    """The log store: flushing, checkpoints, retention and compaction."""

    log_flush_scheduler_interval_ms: int = setting(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        "The default of `flush.ms`; logs are checked every second.",
        kind=ConfigType.LONG,
    )
    log_flush_offset_checkpoint_interval_ms: int = setting(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        "How often recovery points are written to disk.",
        low=0,
    )
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        "log.flush.start.offset.checkpoint.interval.ms",
        60_000,
        "How often log start offsets are written to disk.",
        low=0,
    )
    log_retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms",
        300_000,
        "How often logs are checked for segments past retention.",
        kind=ConfigType.LONG,
        low=1,
    )
    log_initial_task_delay_ms: int = setting(
        "log.initial.task.delay.ms",
        30_000,
        "How long after its start the log store first applies retention and writes recovery "
        "points and log start offsets.",
        kind=ConfigType.LONG,
        low=0,
    )
    num_recovery_threads_per_data_dir: int = setting(
        "num.recovery.threads.per.data.dir",
        2,
        "Accepted, without effect: logs are loaded one after the other, as fast as "
        "one core checks them.",
        low=1,
        update=Update.CLUSTER_WIDE,
    )
    log_cleaner_enable: bool = setting(
        "log.cleaner.enable",
        True,
        "Compact topics whose `cleanup.policy` includes compact.",
    )
    log_cleaner_threads: int = setting(
        "log.cleaner.threads",
        1,
        "Logs compacted at the same time, each by a process of its own.",
        low=0,
        update=Update.CLUSTER_WIDE,
    )
    log_cleaner_backoff_ms: int = setting(
        "log.cleaner.backoff.ms",
        15_000,
        "How long the compactor sleeps when no log needs it.",
        kind=ConfigType.LONG,
        low=0,
        update=Update.CLUSTER_WIDE,
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        "log.cleaner.dedupe.buffer.size",
        134_217_728,
        "Memory for the compactor's maps of keys, of all threads together.",
        kind=ConfigType.LONG,
        update=Update.CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_size: int = setting(
        "log.cleaner.io.buffer.size",
        524_288,
        "Memory for the compactor's read and write buffers, of all threads together.",
        low=0,
        update=Update.CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        "log.cleaner.io.buffer.load.factor",
        0.9,
        "How much of its memory a map of keys may fill.",
        update=Update.CLUSTER_WIDE,
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        "log.cleaner.io.max.bytes.per.second",
        sys.float_info.max,
        "Bytes a second that compaction may read and write together.",
        update=Update.CLUSTER_WIDE,
    )
    producer_id_expiration_ms: int = setting(
        "producer.id.expiration.ms",
        86_400_000,
        "Forget an idempotent producer's sequence numbers after this idle time; after a restart it "
        "counts from the timestamp of the producer's last batch.",
        low=1,
        update=Update.CLUSTER_WIDE,
    )
    producer_id_expiration_check_interval_ms: int = setting(
        "producer.id.expiration.check.interval.ms",
        600_000,
        "How often idle producers are expired.",
        low=1,
    )
    log_message_format_version: str = setting(
        "log.message.format.version",
        "3.0-IV1",
        "Accepted, without effect: batches are always stored as format 2.",
    )
    log_message_downconversion_enable: bool = setting(
        "log.message.downconversion.enable",
        True,
        "Accepted, without effect: old message formats are never served.",
    )
    log_message_timestamp_difference_max_ms: int = setting(
        "log.message.timestamp.difference.max.ms",
        LONG_MAX,
        "How far a record's create time may be from the broker's clock. Only the default: use "
        "`log.message.timestamp.before.max.ms` and `log.message.timestamp.after.max.ms`.",
        kind=ConfigType.LONG,
        low=0,
        only="set log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms",
    )
