"""The limit of partitions on a broker, checked before new ones are created."""

from penstock.broker.context import Context
from penstock.broker.startup import file_limit


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
