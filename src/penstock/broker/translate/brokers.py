"""Live brokers as clients are told of them."""

from collections.abc import Iterator

from penstock.config.listener import Endpoint
from penstock.metadata.image import Broker, ClusterImage


def reachable(image: ClusterImage, listener: str) -> Iterator[tuple[Broker, Endpoint]]:
    """Those that can be reached on the listener on which the client came, with their address."""
    for broker in image.brokers.values():
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            yield broker, endpoint
