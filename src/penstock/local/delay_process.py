"""The delay service of a broker: a process of its own, once there is a delay or retry topic."""

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.broker.app import RunningBroker
from penstock.broker.startup.state_file import BrokerState
from penstock.clock import SystemClock
from penstock.config.broker import BrokerConfig
from penstock.config.delay_route import DELAY_TO, RETRY_TO
from penstock.config.listener import SecurityProtocol
from penstock.local.restarts import restart
from penstock.metadata.image import ClusterImage

LOOK_S: Final = 0.5
STOP_S: Final = 5.0

logger = logging.getLogger(__name__)


def has_delays(image: ClusterImage) -> bool:
    return any(
        configs.get(DELAY_TO) or configs.get(RETRY_TO) for configs in image.topic_configs.values()
    )


class DelayProcess:
    """Starts the service when it is wanted, and again when it dies; ends it with the broker."""

    def __init__(self, config: BrokerConfig, directory: Path) -> None:
        self._config = config
        self._store = directory / "delay" / "index.sqlite"

    async def beside(self, broker: RunningBroker) -> None:
        """Until cancelled."""
        clock, deaths = SystemClock(), 0
        while True:
            if not has_delays(broker.services.cluster.image):
                await asyncio.sleep(LOOK_S)
                continue
            connection = self._connection(broker.state)
            if connection is None:
                logger.warning(
                    "records of delay and retry topics are not delivered: no listener is "
                    "PLAINTEXT, and penstock.services.config is not set"
                )
                return
            started_ms = clock.monotonic_ms()
            await self._run(connection)
            again = restart(clock.monotonic_ms() - started_ms, deaths)
            deaths = again.quick_deaths
            logger.warning("the delay service ended; it starts again in %d ms", again.delay_ms)
            await asyncio.sleep(again.delay_ms / 1000)

    def _connection(self, state: BrokerState) -> list[str] | None:
        """The options by which the service connects; None: it cannot."""
        file = self._config.services.client_file()
        if file is not None:
            return ["--bootstrap-server", state.bootstrap, "--command-config", str(file)]
        for each in self._config.listener.endpoints():
            if each.protocol is SecurityProtocol.PLAINTEXT and each.listener in state.listeners:
                return ["--bootstrap-server", state.listeners[each.listener]]
        return None

    async def _run(self, connection: Sequence[str]) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "penstock",
            *("delay", "serve", *connection),
            *("--store", f"sqlite:{self._store}", "--parent", str(os.getpid())),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        logger.info("delay service started as process %d", process.pid)
        try:
            await process.wait()
        except asyncio.CancelledError:
            process.terminate()
            try:
                async with asyncio.timeout(STOP_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
            raise
