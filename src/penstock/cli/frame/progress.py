"""A progress bar on standard error, if that is a terminal."""

import sys
import time
from types import TracebackType
from typing import Self

import click

from penstock.cli.frame.terminal import is_quiet, is_terminal

CELLS = 30
REDRAW_S = 0.1


def seconds_left(done: float, total: float, elapsed_s: float) -> float | None:
    """The remaining time at the rate so far; None before any progress."""
    return elapsed_s * (total - done) / done if done > 0 else None


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def progress_line(label: str, done: float, total: float, elapsed_s: float) -> str:
    share = min(done / total, 1.0) if total else 1.0
    filled = round(CELLS * share)
    left = seconds_left(done, total, elapsed_s)
    rest = "" if left is None or share == 1.0 else f"  {duration(left)} left"
    return f"{label} [{'#' * filled}{'.' * (CELLS - filled)}] {share:4.0%}{rest}"


def count_line(label: str, done: float, elapsed_s: float) -> str:
    """The line for work of unknown size, such as input from a pipe."""
    rate = done / elapsed_s if elapsed_s > 0 else 0.0
    return f"{label}: {done:,.0f}  {rate:,.0f}/s"


class ProgressBar:
    """`with Progress("moved", total=100) as progress: progress.at(3)`; total None: unknown."""

    def __init__(self, label: str, total: float | None) -> None:
        self.label, self.total = label, total
        self._shown = is_terminal(sys.stderr) and not is_quiet()
        self._began, self._drawn = time.monotonic(), 0.0
        self._width = 0

    def at(self, done: float) -> None:
        now = time.monotonic()
        is_done = self.total is not None and done >= self.total
        if self._shown and (now - self._drawn >= REDRAW_S or is_done):
            self._drawn = now
            elapsed_s = now - self._began
            self._draw(
                count_line(self.label, done, elapsed_s)
                if self.total is None
                else progress_line(self.label, done, self.total, elapsed_s)
            )

    def _draw(self, line: str) -> None:
        click.echo(f"\r{line:<{self._width}}", err=True, nl=False)
        self._width = len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._width:
            click.echo(err=True)
