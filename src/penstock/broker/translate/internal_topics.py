"""Internal topics, created when they are first needed."""

from penstock.broker.context import Services
from penstock.controller.topics import TopicSpec
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.errors import ErrorCode


def new_topic(name: str, services: Services) -> TopicSpec:
    """The settings of a topic that is created automatically."""
    if name == TRANSACTION_STATE:
        return _transaction_state(services)
    if name != CONSUMER_OFFSETS:
        return TopicSpec(name)
    config = services.config.group
    factor = config.offsets_topic_replication_factor
    if "offsets.topic.replication.factor" not in services.cluster.static:
        factor = min(factor, len(services.cluster.image.brokers))
    return TopicSpec(
        name,
        config.offsets_topic_num_partitions,
        factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
            **_min_insync_replicas(factor, services),
        },
    )


def _transaction_state(services: Services) -> TopicSpec:
    config = services.config.transaction
    factor = config.transaction_state_log_replication_factor
    if "transaction.state.log.replication.factor" not in services.cluster.static:
        factor = min(factor, len(services.cluster.image.brokers))
    in_sync = config.transaction_state_log_min_isr
    if "transaction.state.log.min.isr" not in services.cluster.static:
        in_sync = min(in_sync, factor)
    return TopicSpec(
        TRANSACTION_STATE,
        config.transaction_state_log_num_partitions,
        factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(in_sync),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        },
    )


def _min_insync_replicas(factor: int, services: Services) -> dict[str, str]:
    """With several replicas, one follower must have each acknowledged record, unless the operator
    sets `min.insync.replicas`.
    """
    if factor < 2 or "min.insync.replicas" in services.cluster.static:
        return {}
    return {"min.insync.replicas": "2"}


async def ensure_internal_topic(name: str, services: Services) -> None:
    """Create the topic if it is missing; refused until it exists."""
    if name in services.cluster.image.topics:
        return
    (refused,) = await services.control.link.create_topics([new_topic(name, services)])
    if refused is not None and refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
        raise CoordinatorNotAvailable(f"{name} cannot be created: {refused}")
    if name not in services.cluster.image.topics:
        raise CoordinatorNotAvailable(f"{name} was created just now")
