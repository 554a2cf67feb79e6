"""Whether a request for new partitions leaves the broker within its limits."""

from penstock.broker.context import Context
from penstock.broker.startup import file_limit


def check_room(replicas: int, ctx: Context) -> None:
    """Refuse so many new replicas if this broker's share of them would be too many.

    Only its own limit is known here: the other brokers are taken to be alike.
    """
    services = ctx.services
    file_limit.check_room(
        services.file_shares,
        len(services.partitions),
        replicas,
        len(services.cluster.image.brokers),
    )
