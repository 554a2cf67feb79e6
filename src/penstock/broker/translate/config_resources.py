"""The config resource that a request names."""

from collections import Counter
from collections.abc import Iterable

from penstock.broker.context import Services
from penstock.config.resource_type import ConfigResourceType
from penstock.controller.configs import (
    BrokerResource,
    ClientMetricsResource,
    ConfigResource,
    GroupResource,
    TopicResource,
)
from penstock.errors import InvalidRequest
from penstock.types import BrokerId


def resource(kind: int, name: str, services: Services) -> ConfigResource:
    """A topic, a group, a client metrics subscription, a broker, or the default of all brokers
    (empty name).
    """
    match kind:
        case ConfigResourceType.TOPIC:
            return TopicResource(name)
        case ConfigResourceType.BROKER:
            return BrokerResource(known_id(name, services) if name else None)
        case ConfigResourceType.GROUP:
            return GroupResource(name)
        case ConfigResourceType.CLIENT_METRICS:
            return ClientMetricsResource(name)
        case _:
            raise InvalidRequest(f"Unknown resource type {kind}")


def known_id(name: str, services: Services) -> BrokerId:
    """The id of any live broker, which gets altered settings through the store."""
    broker = _id(name, "Node")
    if broker not in services.cluster.image.brokers:
        raise _unexpected(broker, services, "")
    return broker


def own_id(name: str, services: Services) -> BrokerId:
    """The id of this broker; raises for another, as each broker describes only its own settings."""
    broker = _id(name, "Broker")
    if broker != services.broker_id:
        raise _unexpected(broker, services, " or empty string")
    return services.broker_id


def _unexpected(broker: BrokerId, services: Services, other: str) -> InvalidRequest:
    return InvalidRequest(
        f"Unexpected broker id, expected {services.broker_id}{other}, but received {broker}"
    )


def _id(name: str, what: str) -> BrokerId:
    try:
        return BrokerId(int(name))
    except ValueError:
        raise InvalidRequest(f"{what} id must be an integer, but it is: {name}") from None


def named_twice(resources: Iterable[tuple[int, str]]) -> set[tuple[int, str]]:
    return {each for each, count in Counter(resources).items() if count > 1}
