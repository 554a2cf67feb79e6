"""Whose settings a request means."""

from collections import Counter
from collections.abc import Iterable
from enum import IntEnum

from penstock.broker.context import Context, Services
from penstock.broker.forwarding import is_forwarded
from penstock.controller.configs import BrokerResource, ConfigResource, GroupResource, TopicResource
from penstock.controller.topic_rules import InvalidRequest
from penstock.types import BrokerId


class ResourceType(IntEnum):
    """What has settings, numbered as on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def resource(kind: int, name: str, ctx: Context) -> ConfigResource:
    """A topic, a group, this broker, or with an empty name all brokers.

    What another broker has passed on is about that one: its clients sent it there.
    """
    match kind:
        case ResourceType.TOPIC:
            return TopicResource(name)
        case ResourceType.BROKER:
            if is_forwarded(ctx) and name.isdecimal():
                return BrokerResource(BrokerId(int(name)))
            return BrokerResource(own_id(name, ctx.services) if name else None)
        case ResourceType.GROUP:
            return GroupResource(name)
        case _:
            raise InvalidRequest(f"resources of type {kind} have no settings to alter")


def own_id(name: str, services: Services) -> BrokerId:
    """The id of this broker, if it is the one named: only it knows its own settings."""
    try:
        broker = int(name)
    except ValueError:
        raise InvalidRequest(f"a broker's id is a number, not {name!r}") from None
    if broker != services.broker_id:
        raise InvalidRequest(f"this is broker {services.broker_id}, asked was {broker}")
    return services.broker_id


def named_twice(resources: Iterable[tuple[int, str]]) -> set[tuple[int, str]]:
    return {each for each, count in Counter(resources).items() if count > 1}
