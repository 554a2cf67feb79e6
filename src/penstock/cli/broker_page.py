"""Pages of a broker's HTTP server, for what Kafka's protocol has no request for."""

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from penstock.client.address import Address, parse_addresses
from penstock.client.cluster import Client
from penstock.client.configs import ConfigResourceType, Resource, describe_configs
from penstock.client.errors import ConnectionFailed, RequestTimedOut
from penstock.client.metadata import BrokerNode
from penstock.config.listener import EVERY_INTERFACE
from penstock.errors import ConfigError, ProtocolError

SETTING = "penstock.http.listen"

T = TypeVar("T")


async def http_address(client: Client, broker: BrokerNode) -> Address:
    """Where the broker serves HTTP, as it says itself."""
    resource = Resource(ConfigResourceType.BROKER, str(broker.id))
    entry = (await describe_configs(client, resource, names=[SETTING])).get(SETTING)
    if entry is None or not entry.value:
        raise ConfigError(f"broker {broker.id} serves no HTTP: set {SETTING} on it")
    (told,) = parse_addresses(entry.value)
    return Address(broker.address.host, told.port) if told.host in EVERY_INTERFACE else told


def read_page(
    where: Address, path: str, query: dict[str, str], kind: type[T], *, timeout_ms: int
) -> T:
    """What the page says, as the type that its broker wrote."""
    path = f"{path}?{urlencode(query)}"
    connection = HTTPConnection(where.host, where.port, timeout=timeout_ms / 1000)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    except TimeoutError:
        raise RequestTimedOut(f"{where} ({SETTING} of the broker) did not answer in time") from None
    except (OSError, HTTPException) as error:
        raise ConnectionFailed(
            f"{where} ({SETTING} of the broker) cannot be reached: {error}"
        ) from None
    finally:
        connection.close()
    if response.status != HTTPStatus.OK:
        raise ProtocolError(f"{where}{path}: {response.status} {body.decode(errors='replace')}")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"{where}{path}: {error}") from None
