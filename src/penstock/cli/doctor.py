"""`penstock doctor`: what is wrong with a cluster or a data directory, and what to do."""

import shutil
from pathlib import Path

import click
import msgspec

from penstock.advice.cluster_checks import cluster_findings
from penstock.advice.finding import Finding, Level
from penstock.advice.folder_checks import FolderSnapshot, folder_findings
from penstock.advice.snapshot import cluster_snapshot
from penstock.broker.startup.state_file import read_state
from penstock.cli.directory import DirectoryType
from penstock.cli.failure import ExitCode
from penstock.cli.frame.command import Verb
from penstock.cli.frame.terminal import styled
from penstock.cli.log_files import HEAD, log_files
from penstock.cli.output import is_data, iso_time, print_json
from penstock.cli.remote import Remote, remote
from penstock.clock import SystemClock
from penstock.local.workers.layout import folders, read_layout
from penstock.log.disk import DiskFiles
from penstock.log.inspection.verify import verify
from penstock.metadata.tree import FILE_NAME as STORE_FILE

COLOURS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.INFO: "blue"}
LAST_BYTES = 1 << 20
ERRORS = {b"ERROR", b"CRITICAL"}


@click.command(cls=Verb, example=["penstock doctor", "penstock doctor --folder penstock-data"])
@click.option(
    "--folder",
    type=DirectoryType(exists=True),
    help="Check a data directory instead; its broker need not run.",
)
@remote
def doctor(remote: Remote, folder: Path | None) -> None:
    """Check a cluster or a data directory: what is wrong, since when, what it means, what to do.

    The exit code is 1 if there is an error.
    """
    if folder is not None:
        found = folder_findings(folder_snapshot(folder))
    else:
        now_ms = SystemClock().now_ms()
        found = cluster_findings(remote.run(lambda client: cluster_snapshot(client, now_ms)))
    for each in found:
        if is_data():
            print_json(msgspec.to_builtins(each))
        else:
            show(each)
    if not found and not is_data():
        click.echo(styled("nothing is wrong", fg="green"))
    if any(each.level is Level.ERROR for each in found):
        raise SystemExit(ExitCode.FAILED)


def show(each: Finding) -> None:
    click.echo(f"{styled(each.level, fg=COLOURS[each.level])}: {each.what}")
    if each.since_ms is not None:
        click.echo(f"    since: {iso_time(each.since_ms)}")
    click.echo(f"    it means: {each.meaning}")
    click.echo(f"    to do: {each.advice}")


def folder_snapshot(folder: Path) -> FolderSnapshot:
    reports = [verify(DiskFiles(), each, deep=False) for each in log_directories(folder)]
    usage = shutil.disk_usage(folder)
    return FolderSnapshot(
        folder,
        read_state(folder) is not None,
        bool(reports),
        usage.free,
        usage.total,
        tuple(str(each) for report in reports for each in report.damage),
        tuple(str(each) for report in reports for each in report.remarks),
        tuple(each for path in log_files(folder) for each in errors_in(path)),
        has_metadata=(folder / STORE_FILE).is_file(),
    )


def log_directories(folder: Path) -> list[Path]:
    """The log directories inside the data directory; with several workers, each has its own."""
    logs = folder / "logs"
    if not logs.is_dir():
        return []
    workers = read_layout(folder).workers
    inside = [logs] if workers == 1 else [each for (each,) in folders([logs], workers)]
    return [each for each in inside if each.is_dir()]


def errors_in(path: Path) -> list[str]:
    """The first lines of errors near the end of a log file."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - LAST_BYTES, 0))
        return [
            line.decode(errors="replace").rstrip()[:300]
            for line in file
            if (head := HEAD.match(line)) and (head["level"] or head["name"]) in ERRORS
        ]
