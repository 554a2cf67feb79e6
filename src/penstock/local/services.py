"""All services that run beside a broker."""

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path

from penstock.broker.app import RunningBroker
from penstock.config.broker import BrokerConfig
from penstock.config.http_address import http_address
from penstock.config.services import ServicesConfig
from penstock.errors import ConfigError
from penstock.http.server import bound
from penstock.local.console_process import ConsoleProcess
from penstock.local.delay_process import DelayProcess
from penstock.local.registry_process import RegistryProcess
from penstock.local.rest_process import RestProcess

ORPHANED_S, POLL_S = 10.0, 0.05


def check_free(config: ServicesConfig, *, was_killed: bool = False) -> None:
    """Refuse addresses in use, because a service that is started later could only report it in the
    log. Services of a killed broker take a moment to notice and end, so wait for them.
    """
    deadline = time.monotonic() + (ORPHANED_S if was_killed else 0.0)
    while True:
        try:
            _bind_each(config)
        except ConfigError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(POLL_S)
        else:
            return


def _bind_each(config: ServicesConfig) -> None:
    listens = {
        "penstock.registry.listen": config.penstock_registry_listen,
        "penstock.rest.listen": config.penstock_rest_listen,
        "penstock.console.listen": config.penstock_console_listen,
    }
    with ExitStack() as stack:
        for name, text in listens.items():
            if text:
                stack.enter_context(bound(name, *http_address(text, name)))


class LocalServices:
    """The services beside a broker, one of each per machine; each starts only if it is needed."""

    def __init__(self, config: BrokerConfig, directory: Path) -> None:
        self._all = (
            DelayProcess(config, directory),
            RegistryProcess(config),
            RestProcess(config),
            ConsoleProcess(config),
        )

    async def run_alongside(self, broker: RunningBroker) -> None:
        """Run the services until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for each in self._all:
                tasks.create_task(each.run_alongside(broker))
