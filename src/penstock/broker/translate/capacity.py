"""The limit of partitions on a broker, checked before new ones are created."""

from penstock.broker.context import Context
from penstock.broker.startup import file_limit
from penstock.config.broker import BrokerConfig
from penstock.controller.topics import TopicSpec


def check_room(replicas: int, ctx: Context) -> None:
    """Refuse these new replicas if this broker's share of them would exceed its limit.

    Only this broker's limit is known; the others are assumed to have the same.
    """
    services = ctx.services
    file_limit.check_room(
        services.resources.file_shares,
        len(services.replicas.partitions),
        replicas,
        len(services.cluster.image.brokers),
    )


def replicas(new: TopicSpec, config: BrokerConfig) -> int:
    """The number of replicas that the topic will have."""
    if new.assignments:
        return sum(len(chosen) for _, chosen in new.assignments)
    defaults = config.controller
    partitions = new.num_partitions if new.num_partitions > 0 else defaults.num_partitions
    factor = new.replication_factor
    return partitions * (factor if factor > 0 else defaults.default_replication_factor)
