"""The command line against our broker, and against Kafka as the oracle when requested."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from clients.brokers import BROKERS, parameters
from penstock.cli.main import main

Penstock = Callable[..., Result]


@pytest.fixture(scope="session", params=parameters(BROKERS))
def bootstrap(request: pytest.FixtureRequest) -> str:
    address: str = request.getfixturevalue(request.param).bootstrap
    return address


@pytest.fixture
def penstock_command(bootstrap: str) -> Penstock:
    """Runs `penstock` with the broker's address in the environment."""

    def run(*words: str, given: bytes = b"") -> Result:
        environ = {"PENSTOCK_BOOTSTRAP": bootstrap}
        return CliRunner().invoke(main, words, input=given, env=environ)

    return run
