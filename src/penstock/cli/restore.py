"""`penstock restore`: makes a data directory from a backup."""

from pathlib import Path

import click

from penstock.cli.directory import DirectoryType, serve_command
from penstock.cli.frame.command import Verb
from penstock.cli.output import human_bytes, print_result
from penstock.clock import SystemClock
from penstock.counted import counted
from penstock.local.backup.restore import default_log_dirs, verify
from penstock.local.backup.restore import restore as restore_backup


@click.command(cls=Verb, example="penstock restore /backups/monday --dir penstock-data")
@click.argument("source", metavar="FOLDER", type=DirectoryType(exists=True))
@click.option(
    "--dir",
    "directory",
    metavar="D",
    default=Path("penstock-data"),
    show_default=True,
    type=DirectoryType(),
    help="The data directory to create; it must be new or empty.",
)
@click.option(
    "--log-dirs",
    metavar="PATH,...",
    help="Log directories, as many as the broker had, in their order. [logs in D]",
)
@click.option("--dry-run", is_flag=True, help="Only check every file of the backup.")
def restore(source: Path, directory: Path, log_dirs: str | None, dry_run: bool) -> None:
    """Restore the backup in FOLDER; every file is checked.

    `penstock serve --dir D` then serves it, as after a crash at the moment of the backup. With
    other log directories than D/logs, start it with `--set log.dirs=PATH,...`.
    """
    if dry_run:
        manifest = verify(source)
        summary = (
            f"{counted(len(manifest.files), 'file')}, {human_bytes(manifest.size_bytes)}: no damage"
        )
        print_result(summary, {"folder": str(source), "files": len(manifest.files)})
        return
    named = [Path(each) for each in log_dirs.split(",") if each] if log_dirs else []
    manifest = restore_backup(source, directory, named, SystemClock())
    at = named or default_log_dirs(manifest, directory)
    print_result(
        f"restored; start it with: {serve_command(directory, at)}",
        {"directory": str(directory), "logDirs": [str(each) for each in at]},
    )
