"""`penstock metadata`: backups of the embedded metadata store."""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import click

from penstock.cli.directory import DirectoryType
from penstock.cli.frame.command import Noun
from penstock.cli.output import print_result
from penstock.clock import SystemClock
from penstock.counted import counted
from penstock.metadata.backup import export_lines, import_lines
from penstock.metadata.tree import FILE_NAME

Command = TypeVar("Command", bound=Callable[..., Any])


def directory_option(*, exists: bool, help_text: str) -> Callable[[Command], Command]:
    return click.option(
        "--dir",
        "directory",
        metavar="D",
        default="./penstock-data",
        show_default=True,
        type=DirectoryType(exists=exists),
        help=help_text,
    )


@click.group(cls=Noun)
def metadata() -> None:
    """Save and restore the metadata of a single broker: topics and settings."""


@metadata.command("export", example="penstock metadata export backup.jsonl")
@directory_option(exists=True, help_text="The broker's data directory.")
@click.argument(
    "file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), default="-"
)
def export(directory: Path, file: Path) -> None:
    """Write the metadata to FILE, or to standard output, as JSON lines.

    The broker may run. An existing FILE is replaced once the new one is complete.
    """
    lines = (line + b"\n" for line in export_lines(directory / FILE_NAME))
    if str(file) == "-":
        sys.stdout.buffer.writelines(lines)
    elif file.exists() and not file.is_file():  # a device or a pipe
        with file.open("wb") as device:
            device.writelines(lines)
    else:
        replace_file(file.resolve(), lines)


def replace_file(path: Path, lines: Iterable[bytes]) -> None:
    """Replace the file only when the new one is complete, so that a damaged store or a full disk
    keeps the previous backup.

    Only the owner can read it, because the metadata has credentials of users.
    """
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@metadata.command("import", example="penstock metadata import backup.jsonl --dir penstock-data")
@directory_option(exists=False, help_text="The broker's data directory; created if missing.")
@click.argument("file", type=click.File("rb"), default="-")
def import_(directory: Path, file: BinaryIO) -> None:
    """Read the metadata from FILE, or from standard input, into a directory without metadata.

    No broker may run there.
    """
    count = import_lines(directory / FILE_NAME, file, SystemClock())
    path = directory / FILE_NAME
    print_result(
        f"imported {counted(count, 'node')} into {path}", {"file": str(path), "imported": count}
    )
