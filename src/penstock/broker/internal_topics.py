"""Topics that the broker keeps its own state in, made when they are first needed."""

from penstock.broker.context import Services
from penstock.controller.topic_rules import TopicAlreadyExists
from penstock.controller.topics import NewTopic
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.refusal import CoordinatorNotAvailable
from penstock.errors import KafkaError


def new_topic(name: str, services: Services) -> NewTopic:
    """A topic to create because somebody asked for it by name."""
    if name != CONSUMER_OFFSETS:
        return NewTopic(name)
    config = services.config.group
    factor = config.offsets_topic_replication_factor
    if "offsets.topic.replication.factor" not in services.static:
        factor = min(factor, len(services.cluster.image.brokers))
    return NewTopic(
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


def _min_insync_replicas(factor: int, services: Services) -> dict[str, str]:
    """With copies, one of them must have what is acknowledged, unless the operator says so."""
    if factor < 2 or "min.insync.replicas" in services.static:
        return {}
    return {"min.insync.replicas": "2"}


async def ensure_internal_topic(name: str, services: Services) -> None:
    """Create it unless it is there; refused while it cannot be."""
    if name in services.cluster.image.topics:
        return
    (made,) = await services.controller.create_topics([new_topic(name, services)])
    if isinstance(made, KafkaError) and not isinstance(made, TopicAlreadyExists):
        raise CoordinatorNotAvailable(f"{name} cannot be created: {made}")
