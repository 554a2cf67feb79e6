"""Requests a controlled shutdown of this broker from the controller."""

import asyncio
import logging

from penstock.broker.peers.controller_link import ControllerLink
from penstock.config.controller import ControllerConfig
from penstock.counted import counted
from penstock.errors import KafkaError
from penstock.types import BrokerId
from penstock.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

logger = logging.getLogger(__name__)


async def request_controlled_shutdown(
    broker: BrokerId, epoch: int, link: ControllerLink, config: ControllerConfig
) -> None:
    """Have the controller move leadership away; returns after a limited number of attempts."""
    if not config.controlled_shutdown_enable:
        return
    request = ControlledShutdownRequest(broker_id=broker, broker_epoch=epoch)
    for attempt in range(config.controlled_shutdown_max_retries):
        if attempt:
            await asyncio.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
        try:
            response = await link.call(request, ControlledShutdownResponse)
        except KafkaError as error:
            logger.warning("controlled shutdown failed: %s", error)
            continue
        if not response.error_code and not response.remaining_partitions:
            return
        logger.warning(
            "controlled shutdown: %s no other in-sync replica",
            counted(len(response.remaining_partitions), "partition has", "partitions have"),
        )
