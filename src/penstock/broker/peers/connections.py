"""Connections from this broker to others, over the inter-broker listener."""

from collections.abc import Callable

from penstock.broker.cluster import Cluster
from penstock.broker.peers.connection import PeerConnection
from penstock.broker.replicas.environment import source_of
from penstock.client.address import Address
from penstock.client.security import ClientSecurity
from penstock.types import BrokerId


class PeerConnections:
    """Makes connections to brokers. `reached` has the addresses that were reached before."""

    def __init__(
        self,
        broker_id: BrokerId,
        cluster: Cluster,
        security: Callable[[], ClientSecurity],
    ) -> None:
        self.security = security
        self._broker_id, self._cluster = broker_id, cluster
        config = cluster.config.listener
        self.listener, self.source = config.inter_broker(), source_of(config)
        self.reached: set[Address] = set()

    def to(self, broker: BrokerId) -> PeerConnection:
        """A connection to the broker at its current address."""
        return self.at(lambda: self._address_of(broker))

    def at(self, address: Callable[[], Address | None]) -> PeerConnection:
        return PeerConnection(
            address,
            client_id=f"{self._broker_id}",
            source=self.source,
            reached=self.reached,
            security=self.security,
        )

    def _address_of(self, broker: BrokerId) -> Address | None:
        known = self._cluster.image.brokers.get(broker)
        endpoint = None if known is None else known.endpoint(self.listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)
