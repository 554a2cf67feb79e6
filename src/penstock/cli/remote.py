"""Options of every command that talks to a broker, and its client."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock.broker.startup.state_file import read_state, unfound_broker
from penstock.cli.directory import DIRECTORY
from penstock.cli.ranges import SECONDS
from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.client.errors import ConnectionFailed, RequestTimedOut
from penstock.client.route import ANY
from penstock.client.security import NO_SECURITY, ClientSecurity, client_security
from penstock.config.sources import from_file
from penstock.errors import ConfigError

T = TypeVar("T")
DEFAULT = "127.0.0.1:9092"
NOTICE_S = 2.0
NEXT_STEP = "start a broker with `penstock serve`, or name one that runs with --bootstrap"


class Remote:
    """The cluster of a command."""

    def __init__(
        self, bootstrap: str, timeout_ms: int, security: ClientSecurity = NO_SECURITY
    ) -> None:
        self.bootstrap, self.timeout_ms, self._security = bootstrap, timeout_ms, security

    def run(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Run `work` with a client. Ctrl-C cancels it."""
        addresses = parse_addresses(self.bootstrap)

        async def connected() -> T:
            async with Client(
                addresses,
                client_id="penstock-cli",
                security=self._security,
                timeout_ms=self.timeout_ms,
                request_timeout_ms=self.timeout_ms,
                connect_timeout_ms=self.timeout_ms,
            ) as client:
                await reach(client, self.bootstrap)
                return await work(client)

        return asyncio.run(connected())


async def reach(client: Client, bootstrap: str) -> None:
    """Connect to a broker first, so that nobody waits in silence for one that is not there. Later
    failures are retried, since a cluster that was there comes back.
    """

    def still_trying() -> None:
        click.echo(f"penstock: {bootstrap} does not answer yet, still trying", err=True)

    notice = asyncio.get_running_loop().call_later(NOTICE_S, still_trying)
    try:
        await client.connection(ANY)
    except (ConnectionFailed, RequestTimedOut) as error:
        raise type(error)(f"{error}; {NEXT_STEP}") from None
    finally:
        notice.cancel()


def remote(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options, and pass their values as `remote`."""

    @click.option(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT,...",
        help=f"Bootstrap brokers. [$PENSTOCK_BOOTSTRAP, else {DEFAULT}]",
    )
    @click.option(
        "--dir",
        "directory",
        metavar="D",
        type=DIRECTORY,
        help="Use the broker that runs in this data directory.",
    )
    @click.option(
        "--timeout",
        "seconds",
        metavar="SECONDS",
        type=SECONDS,
        default=10.0,
        show_default=True,
        help="How long to wait for a connection and for a response.",
    )
    @click.option(
        "--command-config",
        "config_file",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Client settings in properties syntax, such as security.protocol and ssl.*.",
    )
    @click.option(
        "-X",
        "properties",
        metavar="NAME=VALUE",
        multiple=True,
        help="A client setting; wins over the file.",
    )
    @wraps(command)
    def with_remote(
        *,
        bootstrap: str | None,
        directory: Path | None,
        seconds: float,
        config_file: Path | None,
        properties: tuple[str, ...],
        **others: Any,
    ) -> None:
        settings = _settings(config_file, properties)
        if bootstrap is None and directory is None:
            bootstrap = settings.get("bootstrap.servers")
        address = _address(bootstrap, directory)
        timeout_ms = max(1, round(seconds * 1000))
        command(remote=Remote(address, timeout_ms, client_security(settings)), **others)

    return with_remote


def _settings(file: Path | None, pairs: Iterable[str]) -> dict[str, str]:
    found = {} if file is None else {each.name: each.text for each in from_file(file)}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError("-X must be name=value")
        found[name.strip()] = text
    return found


def _address(bootstrap: str | None, directory: Path | None) -> str:
    if bootstrap is not None and directory is not None:
        raise click.UsageError("--bootstrap and --dir exclude each other")
    if directory is not None:
        return _served_from(directory)
    if bootstrap is not None:
        return bootstrap
    return os.environ.get("PENSTOCK_BOOTSTRAP") or DEFAULT


def _served_from(directory: Path) -> str:
    state = read_state(directory)
    if state is None:
        raise ConfigError(unfound_broker(directory))
    return state.bootstrap
