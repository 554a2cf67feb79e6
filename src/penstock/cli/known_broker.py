"""Looks up brokers named on the command line."""

from penstock.client.metadata import BrokerNode, ClusterMetadata
from penstock.errors import ConfigError
from penstock.types import BrokerId


def known(cluster: ClusterMetadata, broker: int) -> BrokerNode:
    """The node of a broker that is up. Without this check a client would wait for its start."""
    found = cluster.brokers.get(BrokerId(broker))
    if found is None:
        there = ", ".join(map(str, sorted(cluster.brokers)))
        raise ConfigError(f"broker {broker} is not up; there are {there}")
    return found
