"""Reads a page of a broker's HTTP server, if the broker has one."""

import asyncio
from functools import partial
from typing import TypeVar

from penstock.client.broker_page import http_address, read_page
from penstock.client.cluster import Client
from penstock.client.metadata import BrokerNode
from penstock.errors import ConfigError, KafkaError, ProtocolError

T = TypeVar("T")


async def page_of(
    client: Client,
    broker: BrokerNode,
    path: str,
    query: dict[str, str],
    kind: type[T],
    timeout_ms: int | None = None,
) -> T | None:
    """The decoded page; None if the broker cannot be reached or, as Apache Kafka's, has
    no such page.
    """
    limit_ms = timeout_ms or client.request_timeout_ms
    try:
        address = await http_address(client, broker)
        read = partial(read_page, address, path, query, kind, timeout_ms=limit_ms)
        return await asyncio.to_thread(read)
    except (ConfigError, KafkaError, ProtocolError):
        return None
