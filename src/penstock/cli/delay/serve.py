"""`penstock delay serve`: the service that delivers records when they are due."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from penstock.cli.frame.command import Verb
from penstock.cli.log_level import LEVELS
from penstock.cli.logging import start_logging
from penstock.cli.output import notice
from penstock.cli.remote import Remote, remote
from penstock.cli.routes import ROUTES, read_routes
from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.config.delay_route import Route
from penstock.errors import ConfigError
from penstock.http.server import serving as serving_http
from penstock.retry.address_file import write_address
from penstock.retry.health import DelayHealth
from penstock.retry.instance import instance_of
from penstock.retry.routes import RouteRefusals, existing_routes, find_routes
from penstock.retry.serve import serve_delays
from penstock.retry.store.opening import EMBEDDED, STORE, open_store

FOLDER = "penstock-delay"
HTTP = "127.0.0.1:0"
PARENT_S = 1.0

logger = logging.getLogger(__name__)


@click.command(
    "serve",
    cls=Verb,
    example=[
        "penstock delay serve --bootstrap-server kafka1:9092",
        "penstock delay serve --bootstrap-server kafka1:9092 --routes routes.ini",
    ],
)
@remote
@click.option(
    "--store",
    envvar="PENSTOCK_DELAY_STORE",
    metavar="URL",
    help="Where due times are kept: sqlite, sqlite:FILE, redis://…, postgresql://…, mysql://… or "
    f"hbase://…. Or {STORE} among the client settings, where it may contain a password. "
    f"[{EMBEDDED}]",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=FOLDER,
    show_default=True,
    help="Folder of the sqlite store and of the service's name, which must survive restarts.",
)
@ROUTES
@click.option(
    "--http-listen",
    metavar="HOST:PORT",
    default=HTTP,
    show_default=True,
    help="Serve /metrics, /healthz and /readyz here; port 0 picks a free one.",
)
@click.option("--log-level", type=click.Choice(LEVELS, case_sensitive=False), default="info")
@click.option("--parent", type=int, hidden=True, help="End when this process has ended.")
def serve(
    remote: Remote,
    store: str | None,
    folder: Path,
    route_file: Path | None,
    http_listen: str,
    log_level: str,
    parent: int | None,
) -> None:
    """Run the delay service, beside those of other machines. `penstock serve` starts one itself."""
    url = store or remote.settings.get(STORE) or EMBEDDED
    routes = None if route_file is None else read_routes(route_file)
    http, health, refusals = listen_address(http_listen), DelayHealth(), RouteRefusals()
    start_logging(log_level, "plain", None)

    async def serving(client: Client) -> None:
        index = open_store(url, folder)
        try:
            with instance_of(folder) as instance:
                async with asyncio.TaskGroup() as tasks, page(tasks, folder, http, health):
                    task = tasks.create_task(
                        serve_delays(client, index, instance, ready, find, health)
                    )
                    loop = asyncio.get_running_loop()
                    for number in (signal.SIGTERM, signal.SIGINT):
                        loop.add_signal_handler(number, task.cancel)
                    if parent is not None:
                        tasks.create_task(end_with(parent, task))
                    await asyncio.wait([task])
        finally:
            await index.close()

    async def find(client: Client) -> dict[str, Route]:
        if routes is None:
            return await find_routes(client, refusals)
        return await existing_routes(client, routes)

    async def ready() -> None:
        notice("ready")

    remote.run(serving)


def listen_address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"--http-listen must be HOST:PORT, not {text!r}")
    return Address(host.strip("[]"), int(port))


@asynccontextmanager
async def page(
    tasks: asyncio.TaskGroup, folder: Path, address: Address, health: DelayHealth
) -> AsyncIterator[None]:
    served = serving_http(
        tasks, health.routes(), address.host, address.port, setting="--http-listen"
    )
    async with served as bound:
        write_address(folder, f"{bound.host}:{bound.port}")
        logger.info("metrics of the delay service: http://%s:%d/metrics", *bound)
        yield


async def end_with(parent: int, task: asyncio.Task[None]) -> None:
    while os.getppid() == parent and not task.done():
        await asyncio.sleep(PARENT_S)
    task.cancel()
