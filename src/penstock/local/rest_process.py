"""Runs the REST service beside the broker, in its own process, if penstock.rest.listen is set."""

import logging

from penstock.broker.app import RunningBroker
from penstock.config.broker import BrokerConfig
from penstock.config.http_address import http_address
from penstock.config.services import ServicesConfig
from penstock.local.service_process import ServiceProcess
from penstock.rest.token import checked_token

TOKEN_VARIABLE = "PENSTOCK_REST_TOKEN"  # noqa: S105  a name, not a secret

logger = logging.getLogger(__name__)


def check_rest(config: ServicesConfig) -> None:
    """Check before the broker starts that a token is configured, or disabled on purpose."""
    if config.penstock_rest_listen:
        host = http_address(config.penstock_rest_listen, "penstock.rest.listen").host
        checked_token(config.rest_token(), host, "penstock.rest.token")


class RestProcess:
    """Starts the service with the broker, and ends it with the broker."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config.services
        self._process = ServiceProcess("rest", config)

    async def run_alongside(self, broker: RunningBroker) -> None:
        """Run the service until cancelled."""
        listen = self._config.penstock_rest_listen
        if not listen:
            return
        connection = self._process.connection(broker.state)
        if connection is None:
            logger.warning(
                "records are not taken over HTTP: no listener is PLAINTEXT, and "
                "penstock.services.config is not set"
            )
            return
        options = ["--listen", listen, "--log-topic", self._config.penstock_rest_log_topic]
        # Passed in the environment, because all users of the machine can see options.
        await self._process.run(
            [*connection, *options], {TOKEN_VARIABLE: self._config.rest_token()}
        )
