"""Finds the quota of a client: Kafka's keys, and the precedence of entities. Pure."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from penstock.config.address import canonical
from penstock.metadata.client_entity import DEFAULT, ClientEntity
from penstock.metadata.image import Configs


class QuotaType(StrEnum):
    """The quota types; the value is the key under which the limit is stored."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    MUTATION = "controller_mutation_rate"
    CONNECTION = "connection_creation_rate"


class Limit(NamedTuple):
    """A limit, and the clients that share it: all with this user and client id; "" means any."""

    bound: float
    user: str
    client_id: str


def bound_of(text: str | None) -> float | None:
    """A stored limit; None if it is missing or invalid."""
    try:
        bound = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return bound if 0 < bound < math.inf else None


class Limits:
    """The limits of one type, for all entities."""

    def __init__(self, kind: QuotaType, configs: Mapping[ClientEntity, Configs]) -> None:
        self.bounds: Final = {
            entity._replace(ip=entity.ip and canonical(entity.ip)): bound
            for entity, given in configs.items()
            if (bound := bound_of(given.get(kind))) is not None
        }

    def of_client(self, user: str, client_id: str) -> Limit | None:
        """The limit of the most specific entity; users take precedence over client ids."""
        for entity, tags in (
            (ClientEntity(user, client_id), (user, client_id)),
            (ClientEntity(user, DEFAULT), (user, client_id)),
            (ClientEntity(user), (user, "")),
            (ClientEntity(DEFAULT, client_id), (user, client_id)),
            (ClientEntity(DEFAULT, DEFAULT), (user, client_id)),
            (ClientEntity(DEFAULT), (user, "")),
            (ClientEntity(None, client_id), ("", client_id)),
            (ClientEntity(None, DEFAULT), ("", client_id)),
        ):
            bound = self.bounds.get(entity)
            if bound is not None:
                return Limit(bound, *tags)
        return None

    def of_address(self, ip: str) -> float | None:
        own = self.bounds.get(ClientEntity(ip=ip))
        return own if own is not None else self.bounds.get(ClientEntity(ip=DEFAULT))
