"""Checks that the consumer protocol (KIP-848) is enabled."""

from penstock.broker.context import Context
from penstock.coordinator.group.consumer.errors import NotServed
from penstock.metadata.features import GROUP_VERSION

PROTOCOL = "consumer"


def not_served(ctx: Context) -> NotServed | None:
    """The error if it is not enabled, or None."""
    if PROTOCOL not in ctx.services.config.group.group_coordinator_rebalance_protocols:
        return NotServed("group.coordinator.rebalance.protocols leaves the consumer protocol out")
    if ctx.services.cluster.image.features.level(GROUP_VERSION) < 1:
        return NotServed("the consumer protocol needs the feature group.version at level 1")
    return None
