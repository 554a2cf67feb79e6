"""Live brokers in responses to clients."""

from collections.abc import Iterator

from penstock.config.listener import Endpoint
from penstock.metadata.image import Broker, ClusterImage


def reachable(image: ClusterImage, listener: str) -> Iterator[tuple[Broker, Endpoint]]:
    """The brokers with this listener, which is the client's own, and their address on it."""
    for broker in image.brokers.values():
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            yield broker, endpoint
