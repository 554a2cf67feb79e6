"""The delay service of an `EmbeddedBroker`: in its loop, once there is a delay or retry topic.

`penstock serve` starts a process instead; a test would wait for it.
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
    """Until cancelled; does nothing where no listener is PLAINTEXT."""
    address = services_address(config, broker.state)
    if address is None:
        return
    while not has_delays(broker.services.cluster.image):
        await asyncio.sleep(LOOK_S)

    from penstock.client.address import parse_addresses  # late: most tests delay nothing
    from penstock.client.cluster import Client
    from penstock.retry.serve import serve_delays
    from penstock.retry.store.sqlite import SqliteIndex

    async def ready() -> None:
        """Nobody waits for it: what is produced before is delivered too."""

    index = SqliteIndex(directory / "delay" / "index.sqlite")
    try:
        async with Client(parse_addresses(address), client_id="penstock-delay") as client:
            await serve_delays(client, index, "embedded", ready)
    finally:
        await index.close()
