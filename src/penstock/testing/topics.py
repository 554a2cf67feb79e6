"""Creates topics for tests, without a client library."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from penstock.client.address import parse_addresses
from penstock.client.admin import BROKER_DEFAULT, NewTopic, create_topic
from penstock.client.cluster import Client


def make_topic(
    bootstrap: str,
    name: str,
    partitions: int | None,
    replicas: int | None,
    configs: Mapping[str, str] | None,
) -> None:
    new = NewTopic(
        name=name,
        partitions=partitions or BROKER_DEFAULT,
        replication_factor=replicas or BROKER_DEFAULT,
        configs=dict(configs or {}),
    )

    async def make() -> None:
        async with Client(parse_addresses(bootstrap), client_id="penstock-testing") as client:
            await create_topic(client, new)

    # On its own thread, because the test may run inside an event loop.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, make()).result()
