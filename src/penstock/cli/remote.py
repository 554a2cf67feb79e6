"""The connection options of every command that talks to a broker, and its client.

The client is imported when a command runs, to keep --help fast.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli.directory import DIRECTORY
from penstock.cli.frame.client_settings import BOOTSTRAP, DEFAULT, client_settings, from_pairs
from penstock.cli.frame.option import ConnectionOption
from penstock.cli.frame.terminal import note, warn
from penstock.cli.ranges import SECONDS

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.security import ClientSecurity

T = TypeVar("T")
NOTICE_S = 2.0
NEXT_STEP = "start a broker with `penstock serve`, or name one that runs with --bootstrap"
TLS_STEP = "pass its security settings: --command-config FILE, or -X security.protocol=SSL"
OTHER_TLS_STEP = (
    "look at security.protocol, ssl.truststore.location (which certificates to trust) and "
    "ssl.keystore.location (a certificate to show): --command-config FILE, or -X NAME=VALUE"
)


class Remote:
    """The cluster of a command, and its client settings."""

    def __init__(
        self,
        bootstrap: str,
        timeout_ms: int,
        security: "ClientSecurity | None" = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.bootstrap, self.timeout_ms, self.security = bootstrap, timeout_ms, security
        self.settings: Mapping[str, str] = settings or {BOOTSTRAP: bootstrap}

    def run(self, work: "Callable[[Client], Awaitable[T]]") -> T:
        """Run `work` with a client. Ctrl-C cancels it."""
        import asyncio

        from penstock.cli.frame.nearest import with_nearest
        from penstock.client.address import parse_addresses
        from penstock.client.cluster import Client
        from penstock.client.errors import BrokerRefused
        from penstock.client.security import NO_SECURITY

        addresses = parse_addresses(self.bootstrap)

        async def connected() -> T:
            async with Client(
                addresses,
                client_id=self.settings.get("client.id", "penstock-cli"),
                security=self.security or NO_SECURITY,
                timeout_ms=self.timeout_ms,
                request_timeout_ms=self.timeout_ms,
                connect_timeout_ms=self.timeout_ms,
            ) as client:
                await reach(client, self.bootstrap, self.security)
                try:
                    return await work(client)
                except BrokerRefused as error:
                    raise await with_nearest(client, error) from None

        return asyncio.run(connected())


async def reach(client: "Client", bootstrap: str, security: "ClientSecurity | None" = None) -> None:
    """Connect to a broker first, so that a missing broker is reported instead of waited for. Later
    failures are retried, because a cluster that was reachable usually comes back.
    """
    import asyncio

    from penstock.client.errors import ConnectionFailed, RequestTimedOut, TlsFailed
    from penstock.client.route import ANY

    def still_trying() -> None:
        note(f"penstock: {bootstrap} does not answer yet, still trying")

    notice = asyncio.get_running_loop().call_later(NOTICE_S, still_trying)
    try:
        await client.connection(ANY)
    except TlsFailed as error:
        uses_tls = security is not None and security.tls is not None
        raise TlsFailed(f"{error}; {OTHER_TLS_STEP if uses_tls else TLS_STEP}") from None
    except (ConnectionFailed, RequestTimedOut) as error:
        raise type(error)(f"{error}; {NEXT_STEP}") from None
    finally:
        notice.cancel()


OPTIONS: tuple[Callable[[Callable[..., None]], Callable[..., None]], ...] = (
    click.option(
        "-b",
        "--bootstrap-server",
        "--bootstrap",
        "bootstrap",
        cls=ConnectionOption,
        metavar="HOST:PORT,...",
        help=f"Brokers, or a data directory. [$PENSTOCK_BOOTSTRAP, else {DEFAULT}]",
    ),
    click.option(
        "--dir",
        "directory",
        cls=ConnectionOption,
        metavar="D",
        type=DIRECTORY,
        help="Use the broker that runs in this data directory.",
    ),
    click.option(
        "-X",
        "properties",
        cls=ConnectionOption,
        metavar="NAME=VALUE",
        multiple=True,
        help="A Kafka client setting; overrides those below. Repeatable.",
    ),
    click.option(
        "--command-config",
        "config_file",
        cls=ConnectionOption,
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Client settings in properties syntax, such as security.protocol and ssl.*.",
    ),
    click.option(
        "--profile",
        cls=ConnectionOption,
        metavar="NAME",
        help="Client settings saved by `penstock profile`. [$PENSTOCK_PROFILE, else the one in "
        "use]",
    ),
    click.option(
        "--timeout",
        "seconds",
        cls=ConnectionOption,
        metavar="SECONDS",
        type=SECONDS,
        default=10.0,
        show_default=True,
        help="How long to wait for a connection and for a response.",
    ),
)


def remote(command: Callable[..., None]) -> Callable[..., None]:
    """Add the connection options to a command, which gets them as `remote`."""

    @wraps(command)
    def with_remote(**given: Any) -> None:
        own = {name: given.pop(name) for name in NAMES}
        command(remote=remote_of(own), **given)

    # wraps() has copied the parameters of the decorators below this one.
    wrapped: Callable[..., None] = with_remote
    for option in reversed(OPTIONS):
        wrapped = option(wrapped)
    return wrapped


NAMES = ("bootstrap", "directory", "properties", "config_file", "profile", "seconds")


def remote_of(given: Mapping[str, Any]) -> Remote:
    settings = client_settings(
        bootstrap=given["bootstrap"],
        directory=given["directory"],
        pairs=given["properties"],
        file=given["config_file"],
        profile=given["profile"],
        environ=os.environ,
    )
    if given["properties"]:  # only -X is checked: a file or profile may serve other clients too
        from penstock.client.setting_names import no_effect_warnings  # late: rarely needed

        for warning in no_effect_warnings(name for name, _ in from_pairs(given["properties"])):
            warn(f"-X: {warning}")
    from penstock.client.security import client_security

    timeout_ms = max(1, round(given["seconds"] * 1000))
    return Remote(settings[BOOTSTRAP], timeout_ms, client_security(settings), settings)
