"""`penstock stop`: stops the broker of a data directory, such as one of `serve --daemon`."""

from pathlib import Path

import click

from penstock.cli.daemon import stop_broker
from penstock.cli.directory import DIRECTORY
from penstock.cli.frame.command import Verb
from penstock.cli.output import is_data, print_json
from penstock.cli.ranges import SECONDS


@click.command(cls=Verb, example="penstock stop --dir penstock-data")
@click.option(
    "--dir",
    "directory",
    type=DIRECTORY,
    default=Path("penstock-data"),
    show_default=True,
    help="The data directory of the broker.",
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
    """Stop a broker cleanly and wait for its end."""
    stop_broker(directory, seconds)
    if is_data():
        print_json({"directory": str(directory), "stopped": True})
