"""`penstock logs`: the log of a broker that was started by `serve --daemon`."""

import time
from contextlib import ExitStack, closing
from pathlib import Path

import click

from penstock.cli.daemon import LOG_NAME
from penstock.cli.directory import DIRECTORY
from penstock.cli.frame.command import Verb
from penstock.cli.log_files import FileTail, last_lines, log_files, parsed, wanted
from penstock.cli.log_level import LEVELS
from penstock.cli.output import is_data, print_json
from penstock.errors import ConfigError

POLL_S = 0.2


@click.command(cls=Verb, example="penstock logs --dir penstock-data --lines 100 --follow")
@click.option(
    "--dir",
    "directory",
    type=DIRECTORY,
    default=Path("penstock-data"),
    show_default=True,
    help="The data directory of the broker.",
)
@click.option("-n", "--lines", type=click.IntRange(min=0), default=20, show_default=True)
@click.option("-f", "--follow", is_flag=True, help="Print what is added, until Ctrl-C.")
@click.option(
    "--level",
    type=click.Choice(LEVELS, case_sensitive=False),
    help="Only lines of this level.",
)
def logs(directory: Path, lines: int, follow: bool, level: str | None) -> None:
    """Print the last lines of a broker's log (`penstock.log` in its data directory).

    The logs of workers, which have files of their own beside it, are merged by time.
    """
    paths = log_files(directory)
    if not paths:
        raise ConfigError(
            f"{directory / LOG_NAME} does not exist: only brokers started by `serve --daemon` log "
            "to a file, unless --log-file names one"
        )
    with ExitStack() as stack:
        tails = [stack.enter_context(closing(FileTail(each))) for each in paths if follow]
        for line in last_lines(paths, lines, level):
            show(line.text)
        while follow:
            for each in tails:
                for line in wanted(parsed(each.added()), level):
                    show(line.text)
            time.sleep(POLL_S)


def show(line: bytes) -> None:
    text = line.decode(errors="replace").rstrip("\n")
    if is_data():
        print_json({"line": text})
    else:
        click.echo(text)
