"""`penstock logs`: the log of a broker that was started by `serve --daemon`."""

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from penstock.cli.daemon import LOG_NAME
from penstock.cli.directory import DIRECTORY
from penstock.cli.frame.command import Verb
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
@click.option("--level", help="Only lines of this level, such as WARN.")
def logs(directory: Path, lines: int, follow: bool, level: str | None) -> None:
    """Print the last lines of a broker's log (`penstock.log` in its data directory)."""
    path = directory / LOG_NAME
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise ConfigError(
            f"{path} does not exist: only brokers started by `serve --daemon` log to a file, "
            "unless --log-file names one"
        ) from None
    with file:
        for line in last_lines(file, lines, level):
            show(line)
        while follow:
            for line in added_lines(file, path):
                if wanted(line, level):
                    show(line)
            file.close()
            file = path.open("rb")


def added_lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Whole lines as they are added, until the file at `path` is another one: it was rotated."""
    while True:
        is_rotated = path.exists() and not os.path.samestat(path.stat(), os.fstat(file.fileno()))
        added = file.readline()
        if added.endswith(b"\n"):
            yield added
        elif is_rotated:
            return
        else:
            file.seek(-len(added), 1)
            time.sleep(POLL_S)


def last_lines(file: BinaryIO, count: int, level: str | None) -> list[bytes]:
    return list(deque((line for line in file if wanted(line, level)), maxlen=count))


def wanted(line: bytes, level: str | None) -> bool:
    return level is None or level.upper().encode() in line[:60].upper()


def show(line: bytes) -> None:
    text = line.decode(errors="replace").rstrip("\n")
    if is_data():
        print_json({"line": text})
    else:
        click.echo(text)
