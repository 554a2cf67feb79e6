"""`penstock rest`: records over HTTP."""

import asyncio
import os
import signal
from pathlib import Path

import click

from penstock.cli.delay.serve import end_with
from penstock.cli.frame.command import Noun
from penstock.cli.log_level import LEVELS
from penstock.cli.logging import start_logging
from penstock.cli.output import notice
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.config.http_address import http_address
from penstock.local.rest_process import TOKEN_VARIABLE
from penstock.rest.token import NO_TOKEN, checked_token

DEFAULT_LISTEN = "127.0.0.1:8082"


@click.group(cls=Noun)
def rest() -> None:
    """Accept records over HTTP: POST /topics/NAME and POST /log."""


@rest.command(example="penstock rest serve --bootstrap-server kafka1:9092 --token-file rest.token")
@remote
@click.option("--listen", metavar="HOST:PORT", default=DEFAULT_LISTEN, show_default=True)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with the token that clients send (Authorization: Bearer TOKEN). "
    f"[{TOKEN_VARIABLE} in the environment]",
)
@click.option(
    "--no-token", is_flag=True, help="Accept records from anyone; on loopback addresses only."
)
@click.option("--log-topic", default="log", show_default=True, help="Where POST /log writes.")
@click.option("--log-level", type=click.Choice(LEVELS, case_sensitive=False), default="info")
@click.option("--parent", type=int, hidden=True, help="End when this process has ended.")
def serve(
    remote: Remote,
    listen: str,
    token_file: Path | None,
    no_token: bool,
    log_topic: str,
    log_level: str,
    parent: int | None,
) -> None:
    """Serve until SIGTERM or SIGINT. `penstock serve` starts it if penstock.rest.listen is set."""
    # late: other commands do not need it
    from penstock.rest.service import RestSettings, running_rest

    address = http_address(listen, "--listen")
    given = token_file.read_text().strip() if token_file else os.environ.get(TOKEN_VARIABLE, "")
    token = checked_token(
        NO_TOKEN if no_token else given, address.host, "--token-file", without="--no-token"
    )
    start_logging(log_level, "plain", None)
    settings = RestSettings(host=address.host, port=address.port, token=token, log_topic=log_topic)

    async def serving(client: Client) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        async with running_rest(client, settings) as bound, asyncio.TaskGroup() as tasks:
            notice(f"ready {bound.host}:{bound.port}")
            stopping = tasks.create_task(_wait(stop))
            if parent is not None:
                tasks.create_task(end_with(parent, stopping))

    remote.run(serving)


async def _wait(stop: asyncio.Event) -> None:
    await stop.wait()
