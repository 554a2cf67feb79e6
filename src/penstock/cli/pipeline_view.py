"""Shows the progress of a run: a table on a terminal, JSON lines elsewhere."""

import sys
import threading

import click

from penstock.cli.output import print_json
from penstock.spark.pipeline.progress import COLUMNS, BatchProgress, row


class Display:
    """Thread-safe display of batches and messages."""

    def __init__(self, *, as_json: bool | None = None) -> None:
        self._json = not sys.stdout.isatty() if as_json is None else as_json
        self._rows: dict[str, tuple[str, ...]] = {}
        self._drawn = 0
        self._lock = threading.Lock()

    def progress(self, each: BatchProgress) -> None:
        with self._lock:
            if self._json:
                print_json(each)
                return
            self._rows[each.query] = row(each)
            self._erase()
            lines = table(self._rows)
            click.echo("\n".join(lines))
            self._drawn = len(lines)

    def message(self, text: str) -> None:
        with self._lock:
            if not self._json:
                self._erase()
                self._drawn = 0
            click.echo(text, err=True)

    def _erase(self) -> None:
        if self._drawn:
            click.echo(f"\x1b[{self._drawn}A\x1b[J", nl=False, color=True)


def table(rows: dict[str, tuple[str, ...]]) -> list[str]:
    texts = [COLUMNS, *rows.values()]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(each, widths, strict=True)).rstrip()
        for each in texts
    ]
