"""Leaving a cluster: what this broker leads is given away first, so that no client has to wait."""

import asyncio
import logging

from penstock.broker.peers.controller_link import ControllerLink
from penstock.config.controller import ControllerConfig
from penstock.errors import KafkaError
from penstock.types import BrokerId
from penstock.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

logger = logging.getLogger(__name__)


async def leave(
    broker: BrokerId, epoch: int, link: ControllerLink, config: ControllerConfig
) -> None:
    """Ask the controller to move everything away, a few times if it cannot; then leave anyhow."""
    if not config.controlled_shutdown_enable:
        return
    request = ControlledShutdownRequest(broker_id=broker, broker_epoch=epoch)
    for attempt in range(config.controlled_shutdown_max_retries):
        if attempt:
            await asyncio.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
        try:
            answer = await link.call(request, ControlledShutdownResponse)
        except KafkaError as error:
            logger.warning("the controller does not take over: %s", error)
            continue
        if not answer.error_code and not answer.remaining_partitions:
            return
        logger.warning(
            "%d partitions have no other replica in sync", len(answer.remaining_partitions)
        )
