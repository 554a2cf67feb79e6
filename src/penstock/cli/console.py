"""`penstock console`: the web console, in a process of its own."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.frame.command import Verb
from penstock.cli.keystore_options import KEYSTORE, KEYSTORE_PASSWORD
from penstock.cli.log_level import LEVELS
from penstock.cli.logging import start_logging
from penstock.cli.output import notice
from penstock.cli.registry import tls_contexts
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.config.extra import install
from penstock.config.http_address import http_address
from penstock.console.oidc.settings import read_oidc
from penstock.errors import ConfigError
from penstock.http.access import HttpAccess, check_exposed

if TYPE_CHECKING:
    from penstock.console.oidc.provider import Provider

DEFAULT_LISTEN = "127.0.0.1:8080"


@click.command(cls=Verb, example="penstock console --bootstrap-server kafka1:9092")
@remote
@click.option("--listen", metavar="HOST:PORT", default=DEFAULT_LISTEN, show_default=True)
@click.option(
    "--users",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Who may log in: see `penstock registry user`. Needed unless --listen is on loopback.",
)
@click.option(
    "--oidc",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The identity provider (OpenID Connect) at which users with a line `NAME ROLE oidc` log "
    "in, in properties syntax: issuer, client.id, client.secret, redirect.uri, claim.",
)
@click.option(
    "--audit-log",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append a JSON line for each change: who, what, and the outcome.",
)
@KEYSTORE
@KEYSTORE_PASSWORD
@click.option("--read-only", is_flag=True, help="Refuse all changes.")
@click.option(
    "--registry",
    metavar="URL",
    envvar="PENSTOCK_REGISTRY",
    help="Schema registry, for its page and for values that begin with a schema id. "
    "[$PENSTOCK_REGISTRY]",
)
@click.option(
    "--mask",
    metavar="FIELD",
    multiple=True,
    help="What viewers do not see: [TOPIC:]value.card.number, key.user or header.authorization; "
    "repeatable. TOPIC may have * in it.",
)
@click.option(
    "--pipeline",
    "projects",
    metavar="FOLDER",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A project of `penstock pipeline`, to show its progress; repeatable.",
)
@click.option("--log-level", type=click.Choice(LEVELS, case_sensitive=False), default="warning")
@click.option("--parent", type=int, hidden=True, help="End when this process has ended.")
def console(
    remote: Remote,
    listen: str,
    users: Path | None,
    oidc: Path | None,
    audit_log: Path | None,
    keystore: str | None,
    keystore_password: Path | None,
    read_only: bool,
    registry: str | None,
    mask: tuple[str, ...],
    projects: tuple[Path, ...],
    log_level: str,
    parent: int | None,
) -> None:
    """Show a cluster in the browser: brokers, problems, topics, replicas, groups and their lag.

    The same as JSON is under /api/v1, described by /api/v1/openapi.json. Needs the extra `console`.
    Also works with Apache Kafka, except for the replicas' offsets.
    """
    try:
        from penstock.console.mask import Masks, parse_mask
        from penstock.console.serving import bound, serve_console
        from penstock.record_view.registry import SchemaRegistry
    except ModuleNotFoundError as missing:
        text = f"the console needs {missing.name}: {install('console')}"
        raise ConfigError(text) from None
    address = http_address(listen, "--listen")
    check_exposed(address.host, users, "--listen")
    access = HttpAccess(users, read_only=read_only)
    provider = None if oidc is None else identity_provider(oidc, users)
    tls, _ = tls_contexts(keystore, keystore_password, None)
    masks = Masks([parse_mask(each) for each in mask])
    schemas = None if registry is None else SchemaRegistry(registry)
    start_logging(log_level, "plain", None)

    with bound(address) as sock:

        async def serving(client: Client) -> None:
            await serve_console(
                client,
                sock,
                access,
                lambda url: notice(f"ready {url}"),
                audit_log=audit_log,
                tls=tls,
                parent=parent,
                registry=schemas,
                masks=masks,
                projects=projects,
                provider=provider,
            )

        remote.run(serving)


def identity_provider(file: Path, users: Path | None) -> "Provider":
    if users is None:
        raise ConfigError("--oidc needs --users: the file says who may log in, and in which role")
    config = read_oidc(file, "--oidc")
    from penstock.console.oidc.provider import Provider  # late: needs the extra's libraries

    return Provider(config, SystemClock())
