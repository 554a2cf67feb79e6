"""Reads pages of a broker's HTTP server, where Kafka's protocol has no request."""

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from penstock.client.address import Address, parse_addresses
from penstock.client.cluster import Client
from penstock.client.configs import Resource, describe_configs
from penstock.client.errors import ConnectionFailed, RequestTimedOut
from penstock.client.metadata import BrokerNode
from penstock.config.listener import EVERY_INTERFACE
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ConfigError, ProtocolError

SETTING = "penstock.http.listen"

T = TypeVar("T")


async def http_address(client: Client, broker: BrokerNode) -> Address:
    """The address of the broker's HTTP server, from DescribeConfigs.

    A broker that listens on a free port puts that port among its own settings.
    """
    resource = Resource(ConfigResourceType.BROKER, str(broker.id))
    entry = (await describe_configs(client, resource, names=[SETTING])).get(SETTING)
    if entry is None or not entry.value:
        raise ConfigError(f"broker {broker.id} serves no HTTP: set {SETTING} on it")
    (listener,) = parse_addresses(entry.value)
    if listener.host in EVERY_INTERFACE:
        return Address(broker.address.host, listener.port)
    return listener


def read_page(
    address: Address, path: str, query: dict[str, str], kind: type[T], *, timeout_ms: int
) -> T:
    """The page, decoded as the type that the broker encoded."""
    path = f"{path}?{urlencode(query)}"
    connection = HTTPConnection(address.host, address.port, timeout=timeout_ms / 1000)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    except TimeoutError:
        raise RequestTimedOut(
            f"{address} ({SETTING} of the broker) did not answer in time"
        ) from None
    except (OSError, HTTPException) as error:
        raise ConnectionFailed(
            f"{address} ({SETTING} of the broker) cannot be reached: {error}"
        ) from None
    finally:
        connection.close()
    if response.status != HTTPStatus.OK:
        raise ProtocolError(f"{address}{path}: {response.status} {body.decode(errors='replace')}")
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(f"{address}{path}: {error}") from None
