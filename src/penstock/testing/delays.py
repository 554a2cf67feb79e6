"""The delay service of an `EmbeddedBroker`: runs in its loop once a delay or retry topic exists.

`penstock serve` starts a separate process instead, which would slow down tests.
"""

import asyncio
from pathlib import Path
from typing import Final

from penstock.broker.app import RunningBroker
from penstock.config.broker import BrokerConfig
from penstock.local.delay_process import has_delays
from penstock.local.service_process import services_address

LOOK_S: Final = 0.05


async def deliver_delays(config: BrokerConfig, broker: RunningBroker, directory: Path) -> None:
    """Deliver delayed records until cancelled; does nothing without a PLAINTEXT listener."""
    address = services_address(config, broker.state)
    if address is None:
        return
    while not has_delays(broker.services.cluster.image):
        await asyncio.sleep(LOOK_S)

    from penstock.client.address import parse_addresses  # late: rarely needed
    from penstock.client.cluster import Client
    from penstock.retry.serve import serve_delays
    from penstock.retry.store.sqlite import SqliteIndex

    async def ready() -> None:
        """Nothing waits for it: records produced before the service is ready are delivered too."""

    index = SqliteIndex(directory / "delay" / "index.sqlite")
    try:
        async with Client(parse_addresses(address), client_id="penstock-delay") as client:
            await serve_delays(client, index, "embedded", ready)
    finally:
        await index.close()
