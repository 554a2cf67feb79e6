"""Checks of a data directory, whose broker need not run."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from penstock.advice.finding import Finding, Level, some, sorted_findings
from penstock.counted import counted

FULL, NEARLY_FULL = 0.95, 0.85


@dataclass(frozen=True, slots=True)
class FolderSnapshot:
    """The state of a data directory, and the results of `log verify`."""

    path: Path
    is_running: bool
    has_logs: bool
    free_bytes: int
    total_bytes: int
    damage: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    errors_logged: tuple[str, ...] = field(default=())
    """The first lines of recent errors in its log."""
    has_metadata: bool = False
    """Whether a broker has started here. If there are no logs, `log.dirs` names their place."""


def folder_findings(seen: FolderSnapshot) -> list[Finding]:
    return sorted_findings(_findings(seen))


def _findings(seen: FolderSnapshot) -> Iterator[Finding]:
    if not seen.has_logs and seen.has_metadata:
        yield Finding(
            Level.WARNING,
            "logs_elsewhere",
            f"{seen.path} has metadata, but no log directory",
            "the broker has its logs elsewhere, by log.dirs, or they are lost; none were checked",
            "`penstock log verify DIR` checks a directory of log.dirs",
        )
    elif not seen.has_logs:
        yield Finding(
            Level.ERROR,
            "no_logs",
            f"{seen.path} has no log directory",
            "it is not the data directory of a broker, or one that never started",
            "name the directory that `penstock serve --dir` has",
        )
    if seen.damage:
        yield Finding(
            Level.ERROR,
            "damage",
            f"the logs are damaged in {counted(len(seen.damage), 'place')}: {some(seen.damage, 2)}",
            "a start truncates the unflushed end of a log; damage before it is served as an error",
            "`penstock log verify` shows all; copy the partition from another replica, or "
            "restore a backup",
        )
    used = 1 - seen.free_bytes / seen.total_bytes if seen.total_bytes else 0.0
    if used >= NEARLY_FULL:
        yield Finding(
            Level.ERROR if used >= FULL else Level.WARNING,
            "disk",
            f"the disk of {seen.path} is {used:.0%} full",
            "a broker whose disk is full takes its log directory offline",
            "shorten retention, delete topics, or move the directory to a larger disk",
        )
    if seen.errors_logged:
        yield Finding(
            Level.WARNING,
            "errors_logged",
            f"its log has {counted(len(seen.errors_logged), 'error')}, at last: "
            f"{seen.errors_logged[-1]}",
            "something failed while the broker ran",
            f"`penstock logs --dir {quote(str(seen.path))}`",
        )
    if not seen.is_running:
        yield Finding(
            Level.INFO,
            "not_running",
            f"no broker runs in {seen.path}",
            "only its files were checked",
            f"`penstock serve --dir {quote(str(seen.path))}` starts it",
        )
