"""`penstock backup`: copies a single node's metadata and logs while it runs."""

from pathlib import Path

import click

from penstock.cli.directory import DirectoryType
from penstock.cli.frame.command import Verb
from penstock.cli.output import human_bytes, print_result
from penstock.clock import SystemClock
from penstock.counted import counted
from penstock.local.backup.backup import back_up


@click.command(cls=Verb, example="penstock backup /backups/monday --dir penstock-data")
@click.argument("target", metavar="FOLDER", type=DirectoryType())
@click.option(
    "--dir",
    "directory",
    metavar="D",
    default=Path("penstock-data"),
    show_default=True,
    type=DirectoryType(exists=True),
    help="The broker's data directory.",
)
def backup(target: Path, directory: Path) -> None:
    """Copy topics, settings, records, offsets and transactions as of one moment into FOLDER.

    The broker may run: it is paused for some milliseconds, while its files are opened. All records
    acknowledged before that are in the backup. FOLDER must be new or empty; it is a backup once it
    has manifest.json. It contains users' credentials, so only its owner may read it. TLS keys and
    settings files are not in it.
    """
    made = back_up(directory, target, SystemClock())
    pause = f"; the broker was paused for {made.paused_ms} ms" if made.paused_ms else ""
    print_result(
        f"{counted(made.files, 'file')}, {human_bytes(made.size_bytes)} in {target}{pause}",
        {
            "folder": str(target),
            "files": made.files,
            "sizeBytes": made.size_bytes,
            "pausedMs": made.paused_ms,
        },
    )
