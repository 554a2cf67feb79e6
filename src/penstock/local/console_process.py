"""Runs the web console beside the broker, in its own process, if penstock.console.listen is set."""

import logging
from importlib.util import find_spec
from pathlib import Path

from penstock.broker.app import RunningBroker
from penstock.config.broker import BrokerConfig
from penstock.config.extra import install
from penstock.config.http_address import http_address
from penstock.config.services import ServicesConfig
from penstock.console.oidc.settings import read_oidc
from penstock.errors import ConfigError
from penstock.http.access import check_login
from penstock.local.service_process import ServiceProcess

LIBRARIES = ("starlette", "jinja2", "uvicorn")
NAME = "penstock.console.listen"
OIDC = "penstock.console.oidc.config"

logger = logging.getLogger(__name__)


def check_console(config: ServicesConfig) -> None:
    """Check users file and libraries before the broker starts: a console that cannot start would be
    restarted again and again.
    """
    if not config.penstock_console_listen:
        return
    users = config.penstock_console_users
    host = http_address(config.penstock_console_listen, NAME).host
    check_login(host, Path(users) if users else None, NAME)
    if config.penstock_console_oidc_config:
        if not users:
            raise ConfigError(f"{OIDC} needs penstock.console.users")
        read_oidc(Path(config.penstock_console_oidc_config), OIDC)
    for each in LIBRARIES:
        if find_spec(each) is None:
            raise ConfigError(f"{NAME} is set, and {each} missing: {install('console')}")


class ConsoleProcess:
    """Starts the console with the broker, and ends it with the broker."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config.services
        self._process = ServiceProcess("console", config, ("console",))

    async def run_alongside(self, broker: RunningBroker) -> None:
        """Run the console until cancelled."""
        if not self._config.penstock_console_listen:
            return
        connection = self._process.connection(broker.state)
        if connection is None:
            logger.warning(
                "the console is not started: no listener is PLAINTEXT, and "
                "penstock.services.config is not set"
            )
            return
        await self._process.run([*connection, *options(self._config)])


def options(config: ServicesConfig) -> list[str]:
    found = ["--listen", config.penstock_console_listen]
    given = {
        "--users": config.penstock_console_users,
        "--oidc": config.penstock_console_oidc_config,
        "--audit-log": config.penstock_console_audit_log,
        "--keystore": config.penstock_console_ssl_keystore_location,
    }
    if config.penstock_registry_listen and not config.penstock_registry_users:
        scheme = "https" if config.penstock_registry_ssl_keystore_location else "http"
        given["--registry"] = f"{scheme}://{config.penstock_registry_listen}"
    for name, value in given.items():
        if value:
            found += [name, value]
    return found
