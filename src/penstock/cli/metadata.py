"""`penstock metadata`: backups of the embedded metadata store."""

from pathlib import Path
from typing import BinaryIO

import click

from penstock.clock import SystemClock
from penstock.metadata.backup import export_lines, import_lines
from penstock.metadata.tree import FILE_NAME

DIRECTORY = click.option(
    "--dir",
    "directory",
    metavar="D",
    default="./penstock-data",
    show_default=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The broker's data directory.",
)


@click.group()
def metadata() -> None:
    """Save and restore what a single broker knows of topics and settings."""


@metadata.command("export")
@DIRECTORY
@click.argument("file", type=click.File("wb", lazy=True), default="-")
def export(directory: Path, file: BinaryIO) -> None:
    """Write the metadata to FILE, or to standard output, as lines of JSON.

    The broker may be running.
    """
    file.writelines(line + b"\n" for line in export_lines(directory / FILE_NAME))


@metadata.command("import")
@DIRECTORY
@click.argument("file", type=click.File("rb"), default="-")
def import_(directory: Path, file: BinaryIO) -> None:
    """Read the metadata from FILE, or from standard input, into a directory that has none.

    No broker may be running there.
    """
    count = import_lines(directory / FILE_NAME, file, SystemClock())
    click.echo(f"imported {count} nodes into {directory / FILE_NAME}")
