"""The current leader of a partition and its address, for a client that sent to another broker.

They go with NOT_LEADER_OR_FOLLOWER, so that the client needs no Metadata request (KIP-951).
"""

from collections.abc import Iterable, Iterator

from penstock.metadata.image import Broker, ClusterImage
from penstock.metadata.records import NO_LEADER
from penstock.types import BrokerId, TopicPartition


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
