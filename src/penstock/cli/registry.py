"""`penstock registry`: the schema registry, and its users file."""

import asyncio
import gc
import secrets
import signal
import ssl
from pathlib import Path

import click

from penstock.broker.key_store import load_own, load_trusted, read_store
from penstock.cli.delay.serve import end_with
from penstock.cli.frame.command import Noun
from penstock.cli.keystore_options import KEYSTORE, KEYSTORE_PASSWORD
from penstock.cli.log_level import LEVELS
from penstock.cli.logging import start_logging
from penstock.cli.output import notice
from penstock.cli.password import ask_password
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.config.http_address import http_address
from penstock.config.value import Password
from penstock.errors import ConfigError
from penstock.http.access import HttpAccess, check_exposed, password_hash, token_hash
from penstock.http.users import NAME, Role

DEFAULT_LISTEN = "127.0.0.1:8081"
READY_S = 0.05


@click.group(cls=Noun)
def registry() -> None:
    """Serve schemas over Confluent's REST API.

    They are kept in the topic _schemas, as Confluent's registry keeps them.
    """


@registry.command(example="penstock registry serve --bootstrap-server kafka1:9092")
@remote
@click.option("--listen", metavar="HOST:PORT", default=DEFAULT_LISTEN, show_default=True)
@click.option(
    "--advertised",
    metavar="HOST",
    help="The name under which other instances reach this one. [the host of --listen]",
)
@click.option(
    "--users",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Who may log in: see `penstock registry user`. Needed unless --listen is on loopback.",
)
@click.option("--read-only", is_flag=True, help="Refuse all changes.")
@KEYSTORE
@KEYSTORE_PASSWORD
@click.option(
    "--truststore",
    metavar="FILE",
    help="Certificates that clients must show, and other instances do, in PEM or PKCS12.",
)
@click.option("--topic", default="_schemas", show_default=True)
@click.option(
    "--group",
    default="schema-registry",
    show_default=True,
    help="Group in which the instances of one registry elect the one that writes.",
)
@click.option("--log-level", type=click.Choice(LEVELS, case_sensitive=False), default="info")
@click.option("--parent", type=int, hidden=True, help="End when this process has ended.")
def serve(
    remote: Remote,
    listen: str,
    advertised: str | None,
    users: Path | None,
    read_only: bool,
    keystore: str | None,
    keystore_password: Path | None,
    truststore: str | None,
    topic: str,
    group: str,
    log_level: str,
    parent: int | None,
) -> None:
    """Run an instance of the registry. `penstock serve --registry` starts one itself."""
    # Late imports: other commands need neither the service nor its libraries.
    from penstock.registry.libraries import check_libraries
    from penstock.registry.rest import RegistrySettings, running_registry

    address = http_address(listen, "--listen")
    check_exposed(address.host, users, "--listen")
    check_libraries()
    tls, to_leader = tls_contexts(keystore, keystore_password, truststore)
    start_logging(log_level, "plain", None)

    async def serving(client: Client) -> None:
        settings = RegistrySettings(
            host=address.host,
            port=address.port,
            access=HttpAccess(users, read_only=read_only),
            advertised=advertised,
            tls=tls,
            to_leader=to_leader,
        )
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        async with (
            running_registry(client, settings, topic=topic, group=group) as running,
            asyncio.TaskGroup() as tasks,
        ):
            stopping = tasks.create_task(wait(stop))
            if parent is not None:
                tasks.create_task(end_with(parent, stopping))
            while not running.service.is_ready and not stopping.done():
                await asyncio.sleep(READY_S)
            gc.collect()
            gc.freeze()  # the schemas are permanent: collecting them again would stall the loop
            notice(f"ready {running.address.host}:{running.address.port}")

    remote.run(serving)


async def wait(stop: asyncio.Event) -> None:
    await stop.wait()


def tls_contexts(
    keystore: str | None, password: Path | None, truststore: str | None
) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    """TLS contexts for clients, and for other instances of the registry."""
    if keystore is None:
        if truststore is not None:
            raise ConfigError(
                "--truststore needs --keystore: without TLS, clients present no certificate"
            )
        return None, None
    secret = None if password is None else Password(password.read_text().strip())
    own = read_store("--keystore", keystore, "--keystore-password", secret)
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    server.minimum_version = ssl.TLSVersion.TLSv1_2
    load_own(server, "--keystore", own, "--keystore-password", secret)
    if truststore is not None:
        trusted = read_store("--truststore", truststore, "--keystore-password", secret)
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for context in (server, client):
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            load_trusted(context, "--truststore", trusted)
        server.verify_mode = ssl.CERT_REQUIRED
    load_own(client, "--keystore", own, "--keystore-password", secret)
    return server, client


@registry.command(example="penstock registry user alice --role admin >> users.txt")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([each.name.lower() for each in Role]),
    default="viewer",
    show_default=True,
)
@click.option("--token", is_flag=True, help="Make a token for Bearer instead of a password.")
def user(name: str, role: str, token: bool) -> None:
    """Print a line for a users file.

    The password is read from a prompt or standard input; a token is shown on standard error.
    """
    if not NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not a name: letters, digits, . _ @ - (at most 64)")
    if token:
        secret = secrets.token_urlsafe(32)
        click.echo(f"token {secret}", err=True)
        click.echo(f"{name} {role} {token_hash(secret)}")
        return
    click.echo(f"{name} {role} {password_hash(ask_password(name))}")
