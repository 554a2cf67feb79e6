"""Settings of the transaction coordinator and its state topic."""

from dataclasses import dataclass

from penstock.config.setting import Update, setting
from penstock.config.value import ConfigType


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """The transaction coordinator and its state topic."""

    transaction_max_timeout_ms: int = setting(
        "transaction.max.timeout.ms",
        900_000,
        "Longest timeout that a producer may request.",
        low=1,
    )
    transactional_id_expiration_ms: int = setting(
        "transactional.id.expiration.ms",
        604_800_000,
        "Forget a transactional id after this idle time.",
        low=1,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "How often transactions past their timeout are aborted.",
        low=1,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        "How often expired transactional ids are removed.",
        low=1,
    )
    transaction_partition_verification_enable: bool = setting(
        "transaction.partition.verification.enable",
        True,
        "Have partition leaders ask the coordinator whether a transaction is open (KIP-890).",
        update=Update.CLUSTER_WIDE,
    )
    transaction_two_phase_commit_enable: bool = setting(
        "transaction.two.phase.commit.enable",
        False,
        "Allow producers to prepare transactions for an outside coordinator (KIP-939). Only false.",
        only="no client can prepare a transaction yet (InitProducerId v6 is not stable in Kafka)",
    )
    transaction_state_log_num_partitions: int = setting(
        "transaction.state.log.num.partitions",
        50,
        "Partitions of `__transaction_state`; not to be changed later.",
        low=1,
    )
    transaction_state_log_replication_factor: int = setting(
        "transaction.state.log.replication.factor",
        3,
        "Replicas of `__transaction_state`; while not set, a smaller cluster uses as many as "
        "it has brokers.",
        kind=ConfigType.SHORT,
        low=1,
    )
    transaction_state_log_min_isr: int = setting(
        "transaction.state.log.min.isr",
        2,
        "`min.insync.replicas` of `__transaction_state`.",
        low=1,
    )
    transaction_state_log_segment_bytes: int = setting(
        "transaction.state.log.segment.bytes",
        104_857_600,
        "Segment size of `__transaction_state`.",
        low=1,
    )
    transaction_state_log_load_buffer_size: int = setting(
        "transaction.state.log.load.buffer.size",
        5_242_880,
        "Accepted, without effect: a coordinator reads its transactions in slices of 64 KB.",
        low=1,
    )
    add_partitions_to_txn_retry_backoff_ms: int = setting(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        "Accepted, without effect: the producer gets a retriable error and backs off itself.",
        low=1,
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = setting(
        "add.partitions.to.txn.retry.backoff.max.ms",
        100,
        "Accepted, without effect: the producer gets a retriable error and backs off itself.",
        low=0,
    )
