"""Settings of the controller: topic creation and deletion, elections and shutdown."""

from dataclasses import dataclass

from penstock.config.setting import setting
from penstock.config.value import ConfigType


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """Topics' lives, elections and shutdown: what the controller decides by."""

    auto_create_topics_enable: bool = setting(
        "auto.create.topics.enable",
        True,
        "Create a missing topic when a client first requests it by name.",
    )
    num_partitions: int = setting(
        "num.partitions",
        1,
        "Partitions of a topic created without a partition count.",
        low=1,
    )
    default_replication_factor: int = setting(
        "default.replication.factor",
        1,
        "Replicas of a topic created without a replication factor.",
    )
    delete_topic_enable: bool = setting(
        "delete.topic.enable",
        True,
        "Allow topics to be deleted.",
    )
    create_topic_policy_class_name: str | None = setting(
        "create.topic.policy.class.name",
        None,
        "A class that decides which topics may be created. Only unset.",
        kind=ConfigType.CLASS,
        only="Java classes cannot be loaded, and topics that it forbids would be created",
    )
    alter_config_policy_class_name: str | None = setting(
        "alter.config.policy.class.name",
        None,
        "A class that decides which settings may be altered. Only unset.",
        kind=ConfigType.CLASS,
        only="Java classes cannot be loaded, and settings that it protects would be altered",
    )
    auto_leader_rebalance_enable: bool = setting(
        "auto.leader.rebalance.enable",
        True,
        "Return leadership to preferred leaders in the background.",
    )
    leader_imbalance_check_interval_seconds: int = setting(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often the balance of leaders is checked.",
        kind=ConfigType.LONG,
        low=1,
    )
    leader_imbalance_per_broker_percentage: int = setting(
        "leader.imbalance.per.broker.percentage",
        10,
        "Share of a broker's preferred partitions led elsewhere beyond which leadership is "
        "given back.",
    )
    unclean_leader_election_interval_ms: int = setting(
        "unclean.leader.election.interval.ms",
        300_000,
        "Accepted, without effect: an unclean leader is elected once no in-sync replica can lead.",
        kind=ConfigType.LONG,
        low=1,
    )
    controller_socket_timeout_ms: int = setting(
        "controller.socket.timeout.ms",
        30_000,
        "How long the controller waits for a broker's answer.",
    )
    controlled_shutdown_enable: bool = setting(
        "controlled.shutdown.enable",
        True,
        "Move leadership away before stopping.",
    )
    controlled_shutdown_max_retries: int = setting(
        "controlled.shutdown.max.retries",
        3,
        "Attempts to move leadership away before stopping without it.",
    )
    controlled_shutdown_retry_backoff_ms: int = setting(
        "controlled.shutdown.retry.backoff.ms",
        5000,
        "How long to wait between these attempts.",
        kind=ConfigType.LONG,
    )
    inter_broker_protocol_version: str = setting(
        "inter.broker.protocol.version",
        "3.9-IV0",
        "Accepted, without effect: brokers speak the protocol of Kafka 3.9 between themselves.",
    )
