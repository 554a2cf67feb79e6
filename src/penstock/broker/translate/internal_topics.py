"""Creates internal topics when they are first needed."""

from penstock.broker.context import Services
from penstock.controller.topics import TopicSpec
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.share.coordinator import TOPIC as SHARE_GROUP_STATE
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.errors import ErrorCode


def new_topic(name: str, services: Services) -> TopicSpec:
    """The spec of a topic that is created automatically."""
    if name == TRANSACTION_STATE:
        return _transaction_state(services)
    if name == SHARE_GROUP_STATE:
        return _share_group_state(services)
    if name != CONSUMER_OFFSETS:
        return TopicSpec(name)
    config = services.config.group
    factor = _factor(
        "offsets.topic.replication.factor", config.offsets_topic_replication_factor, services
    )
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
    factor = _factor(
        "transaction.state.log.replication.factor",
        config.transaction_state_log_replication_factor,
        services,
    )
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


def _share_group_state(services: Services) -> TopicSpec:
    """Never compacted: an update of a share-partition depends on the updates before it."""
    config = services.config.share
    factor = _factor(
        "share.coordinator.state.topic.replication.factor",
        config.share_coordinator_state_topic_replication_factor,
        services,
    )
    in_sync = config.share_coordinator_state_topic_min_isr
    if "share.coordinator.state.topic.min.isr" not in services.cluster.static:
        in_sync = min(in_sync, factor)
    return TopicSpec(
        SHARE_GROUP_STATE,
        config.share_coordinator_state_topic_num_partitions,
        factor,
        configs={
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": str(in_sync),
            "retention.bytes": "-1",
            "retention.ms": "-1",
            "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
        },
    )


def _factor(setting: str, factor: int, services: Services) -> int:
    """The configured factor; the default is lowered to the number of brokers."""
    if setting in services.cluster.static:
        return factor
    return min(factor, len(services.cluster.image.brokers))


def _min_insync_replicas(factor: int, services: Services) -> dict[str, str]:
    """With several replicas, at least one follower must have each acknowledged record, unless the
    operator sets `min.insync.replicas`.
    """
    if factor < 2 or "min.insync.replicas" in services.cluster.static:
        return {}
    return {"min.insync.replicas": "2"}


async def ensure_internal_topic(name: str, services: Services) -> None:
    """Create the topic if it is missing; raises until it is in the image."""
    if name in services.cluster.image.topics:
        return
    (refused,) = await services.control.link.create_topics([new_topic(name, services)])
    if refused is not None and refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
        raise CoordinatorNotAvailable(f"{name} cannot be created: {refused}")
    if name not in services.cluster.image.topics:
        raise CoordinatorNotAvailable(f"{name} was created just now")


async def create_dead_letter_topic(name: str, services: Services) -> None:
    """Create a dead letter topic for share groups; raises if that fails."""
    spec = TopicSpec(name, configs={"errors.deadletterqueue.group.enable": "true"})
    (refused,) = await services.control.link.create_topics([spec])
    if refused is not None and refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
        raise refused
