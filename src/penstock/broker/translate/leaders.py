"""The current leader, returned with NOT_LEADER_OR_FOLLOWER (KIP-951).

The client can go to the leader without a Metadata request.
"""

from collections.abc import Iterable, Iterator

from penstock.broker.context import Services
from penstock.metadata.image import Broker, ClusterImage
from penstock.metadata.records import NO_LEADER
from penstock.replication.fencing import NotLeader
from penstock.replication.partition import Partition
from penstock.replication.partitions import UnknownPartition
from penstock.types import BrokerId, TopicPartition


def partition_here(services: Services, topic: str, index: int) -> Partition:
    """The partition. If only other brokers hold it: NOT_LEADER_OR_FOLLOWER."""
    found = services.replicas.partitions.find(topic, index)
    if found is None:
        if services.cluster.image.partition(TopicPartition(topic, index)) is not None:
            raise NotLeader(f"{topic}-{index} is on other brokers")
        raise UnknownPartition(f"{topic}-{index} does not exist")
    return found


def leader_of(image: ClusterImage, topic: str, index: int) -> tuple[int, int] | None:
    """The leader's id and epoch, as far as this broker knows; None without a leader."""
    found = image.partition(TopicPartition(topic, index))
    if found is None or found.leader == NO_LEADER:
        return None
    return found.leader, found.leader_epoch


def endpoints(
    image: ClusterImage, listener: str, leaders: Iterable[int]
) -> Iterator[tuple[Broker, str, int]]:
    """Each leader with its host and port on the client's listener."""
    for leader in sorted(set(leaders)):
        broker = image.brokers.get(BrokerId(leader))
        endpoint = None if broker is None else broker.endpoint(listener)
        if broker is not None and endpoint is not None:
            yield broker, endpoint.host, endpoint.port
