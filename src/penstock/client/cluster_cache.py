"""A client's knowledge of the cluster: brokers, leaders, coordinators. No I/O.

Both clients use it: the async client (`penstock.client.cluster`) and Spark's blocking client.
"""

import random
from collections.abc import Iterable, Sequence

from penstock.client.address import Address
from penstock.client.metadata import ClusterMetadata, TopicMetadata, cluster_of
from penstock.client.route import ToCoordinator
from penstock.types import BrokerId
from penstock.wire.messages.metadata import MetadataResponse


class ClusterCache:
    """Valid until a response shows that something has moved; then `forget`."""

    def __init__(self, bootstrap: Sequence[Address]) -> None:
        self.topics: dict[str, TopicMetadata] = {}
        self.coordinators: dict[ToCoordinator, Address] = {}
        self._bootstrap = tuple(bootstrap)
        self._cluster: ClusterMetadata | None = None
        self._seen: list[Address] = []
        """Brokers of the latest metadata, to connect to when the metadata is forgotten."""

    @property
    def controller(self) -> BrokerId | None:
        known = self._cluster
        return known.controller if known is not None and known.controller >= 0 else None

    def address(self, broker: BrokerId) -> Address | None:
        known = self._cluster
        return known.brokers[broker].address if known and broker in known.brokers else None

    def update(self, response: MetadataResponse) -> None:
        """Remember the brokers and the controller; raises the response's error."""
        self._cluster = cluster_of(response)
        self._seen = [broker.address for broker in self._cluster.brokers.values()]

    def add(self, topics: Iterable[TopicMetadata]) -> None:
        self.topics |= {topic.name: topic for topic in topics}

    def forget(self) -> None:
        """Drop leaders, coordinators and controller, since something has moved."""
        self.topics.clear()
        self.coordinators.clear()
        self._cluster = None

    def addresses(self) -> Iterable[Address]:
        """Known brokers in random order; then the bootstrap servers, should all have moved."""
        seen = random.sample(self._seen, len(self._seen))
        return dict.fromkeys((*seen, *self._bootstrap))
