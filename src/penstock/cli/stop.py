"""`penstock stop`: end a broker that was started with `serve --daemon`, or any by its directory."""

from pathlib import Path

import click

from penstock.cli.daemon import stop_broker
from penstock.cli.ranges import SECONDS


@click.command()
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("penstock-data"),
    show_default=True,
    help="The directory that the broker was started with.",
)
@click.option(
    "--timeout",
    "seconds",
    type=SECONDS,
    default=60.0,
    show_default=True,
    help="How long to wait.",
)
def stop(directory: Path, seconds: float) -> None:
    """Stop a broker cleanly and wait until it has ended."""
    stop_broker(directory, seconds)
