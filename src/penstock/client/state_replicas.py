"""The replication factor of a topic with the state of a service."""

from typing import Final

from penstock.client.admin import describe_cluster
from penstock.client.cluster import Client
from penstock.client.configs import Resource, describe_configs
from penstock.client.errors import BrokerRefused
from penstock.config.resource_type import ConfigResourceType

FACTOR: Final = "offsets.topic.replication.factor"
MOST: Final = 3


async def state_replicas(client: Client) -> int:
    """As many replicas as the offsets topic has, but at most three: one where all brokers are
    workers of one machine. If the setting cannot be read: three, or as many as there are brokers.
    """
    brokers = sorted((await describe_cluster(client)).brokers)
    wanted = MOST
    if len(brokers) > 1:
        try:
            resource = Resource(ConfigResourceType.BROKER, str(brokers[0]))
            found = await describe_configs(client, resource, names=[FACTOR])
        except BrokerRefused:
            pass
        else:
            if FACTOR in found:
                wanted = min(int(found[FACTOR].value or MOST), MOST)
    return min(wanted, len(brokers))
