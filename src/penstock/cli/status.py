"""`penstock status`: whether a broker runs in a data directory, and where it listens."""

from pathlib import Path
from typing import Any

import click

from penstock.broker.startup.state_file import BrokerState, read_state, unfound_broker
from penstock.cli.directory import DIRECTORY
from penstock.cli.failure import ExitCode
from penstock.cli.frame.command import Verb
from penstock.cli.output import is_data, print_json
from penstock.retry.address_file import read_address


@click.command(cls=Verb, example="penstock status --dir penstock-data")
@click.option(
    "--dir",
    "directory",
    type=DIRECTORY,
    default=Path("penstock-data"),
    show_default=True,
    help="The data directory of the broker.",
)
def status(directory: Path) -> None:
    """Show the broker of a data directory. The exit code is 1 if none runs there."""
    state = read_state(directory)
    if is_data():
        print_json(row(directory, state))
    elif state is None:
        click.echo(unfound_broker(directory))
    else:
        click.echo(f"broker {state.broker_id} runs as process {state.pid} at {state.bootstrap}")
        click.echo(f"cluster {state.cluster_id}, http {state.http or '-'}")
        if delays := read_address(directory / "delay"):
            click.echo(f"delay service, http {delays}")
        for each in state.workers:
            click.echo(f"worker {each.index} is broker {each.broker_id}, process {each.pid}")
    if state is None:
        raise SystemExit(ExitCode.FAILED)


def row(directory: Path, state: BrokerState | None) -> dict[str, Any]:
    known = state is not None
    return {
        "directory": str(directory),
        "running": known,
        "pid": state.pid if state else None,
        "broker_id": state.broker_id if state else None,
        "cluster_id": state.cluster_id if state else None,
        "bootstrap": state.bootstrap if state else None,
        "http": state.http if state else None,
        "delay_http": read_address(directory / "delay") if state else None,
        "workers": [each.pid for each in state.workers] if state else [],
    }
