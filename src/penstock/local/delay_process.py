"""Runs the delay service beside the broker, in its own process, once there is a delay
or retry topic.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from penstock.broker.app import RunningBroker
from penstock.config.broker import BrokerConfig
from penstock.config.delay_route import DELAY_TO, RETRY_TO
from penstock.local.service_process import ServiceProcess
from penstock.metadata.image import ClusterImage

LOOK_S: Final = 0.5

logger = logging.getLogger(__name__)


def has_delays(image: ClusterImage) -> bool:
    return any(
        configs.get(DELAY_TO) or configs.get(RETRY_TO) for configs in image.topic_configs.values()
    )


class DelayProcess:
    """Starts the service when it is needed; ends it with the broker."""

    def __init__(self, config: BrokerConfig, directory: Path) -> None:
        self._process = ServiceProcess("delay", config)
        self._folder = directory / "delay"
        # Passed in the environment, because all users can see the arguments of a process.
        self._secrets = {"PENSTOCK_DELAY_STORE": config.services.delay_store()}

    async def run_alongside(self, broker: RunningBroker) -> None:
        """Wait for a delay or retry topic, then run the service until cancelled."""
        while not has_delays(broker.services.cluster.image):
            await asyncio.sleep(LOOK_S)
        connection = self._process.connection(broker.state)
        if connection is None:
            logger.warning(
                "records of delay and retry topics are not delivered: no listener is "
                "PLAINTEXT, and penstock.services.config is not set"
            )
            return
        await self._process.run([*connection, "--folder", str(self._folder)], self._secrets)
