"""`penstock delay`: the service that delivers records when they are due."""

import asyncio
import logging
import os
import signal
from pathlib import Path
from uuid import uuid4

import click

from penstock.cli.frame.command import Noun
from penstock.cli.logging import LEVELS, start_logging
from penstock.cli.output import notice
from penstock.cli.remote import Remote, remote
from penstock.client.cluster import Client
from penstock.errors import ConfigError
from penstock.retry.serve import serve_delays
from penstock.retry.store.sqlite import SqliteIndex

DEFAULT_STORE = "sqlite:penstock-delay/index.sqlite"
PARENT_S = 1.0

logger = logging.getLogger(__name__)


@click.group(cls=Noun)
def delay() -> None:
    """Deliver records when they are due.

    A topic delays records if penstock.delay.to is set, and retries them if penstock.retry.to is.
    """


@delay.command(example="penstock delay serve --bootstrap-server kafka1:9092")
@remote
@click.option(
    "--store",
    default=DEFAULT_STORE,
    show_default=True,
    help="Where due times are kept. A cache: it is built again from the topics if it is lost.",
)
@click.option("--log-level", type=click.Choice(LEVELS, case_sensitive=False), default="info")
@click.option("--parent", type=int, hidden=True, help="End when this process has ended.")
def serve(remote: Remote, store: str, log_level: str, parent: int | None) -> None:
    """Run the delay service, beside those of other machines. `penstock serve` starts one itself."""
    path = store_path(store)
    start_logging(log_level, "plain", None)

    async def serving(client: Client) -> None:
        index = SqliteIndex(path)
        try:
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(serve_delays(client, index, instance_of(path), ready))
                loop = asyncio.get_running_loop()
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.add_signal_handler(number, task.cancel)
                if parent is not None:
                    tasks.create_task(end_with(parent, task))
        finally:
            await index.close()

    async def ready() -> None:
        notice("ready")

    remote.run(serving)


def store_path(store: str) -> Path:
    kind, colon, rest = store.partition(":")
    if kind != "sqlite" or not colon or not rest:
        raise ConfigError(f"--store must be sqlite:PATH, not {store!r}")
    return Path(rest)


def instance_of(path: Path) -> str:
    """Kept beside the store, so that a restart ends the transaction that a crash left open."""
    file = path.with_name("instance")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(uuid4().hex)
        return file.read_text().strip()
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None


async def end_with(parent: int, task: asyncio.Task[None]) -> None:
    while os.getppid() == parent and not task.done():
        await asyncio.sleep(PARENT_S)
    task.cancel()
