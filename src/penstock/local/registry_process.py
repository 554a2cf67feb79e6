"""Runs the schema registry beside the broker, in its own process, if
penstock.registry.listen is set.
"""

import logging
from pathlib import Path

from penstock.broker.app import RunningBroker
from penstock.config.broker import BrokerConfig
from penstock.config.http_address import http_address
from penstock.config.services import ServicesConfig
from penstock.http.access import check_login
from penstock.local.service_process import ServiceProcess
from penstock.registry.libraries import check_libraries

NAME = "penstock.registry.listen"

logger = logging.getLogger(__name__)


def check_registry(config: ServicesConfig) -> None:
    """Check before the broker starts: a registry that cannot start would be restarted forever."""
    if config.penstock_registry_listen:
        users = config.penstock_registry_users
        host = http_address(config.penstock_registry_listen, NAME).host
        check_login(host, Path(users) if users else None, NAME)
        check_libraries()


class RegistryProcess:
    """Starts the service with the broker, and ends it with the broker."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config.services
        self._process = ServiceProcess("registry", config)

    async def run_alongside(self, broker: RunningBroker) -> None:
        """Run the registry until cancelled."""
        if not self._config.penstock_registry_listen:
            return
        connection = self._process.connection(broker.state)
        if connection is None:
            logger.warning(
                "the schema registry is not started: no listener is PLAINTEXT, and "
                "penstock.services.config is not set"
            )
            return
        await self._process.run([*connection, *options(self._config)])


def options(config: ServicesConfig) -> list[str]:
    found = ["--listen", config.penstock_registry_listen]
    given = {
        "--users": config.penstock_registry_users,
        "--keystore": config.penstock_registry_ssl_keystore_location,
        "--truststore": config.penstock_registry_ssl_truststore_location,
    }
    for name, value in given.items():
        if value:
            found += [name, value]
    return found
