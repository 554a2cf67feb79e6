"""Output of commands: tables for people, one JSON object per line for programs."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import click
import msgspec

from penstock.cli.failure import FORMAT_KEY

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  UTC throughout; "Z" is said where it is printed


def _store_format(context: click.Context, _parameter: click.Parameter, output: str) -> str:
    context.meta[FORMAT_KEY] = output
    return output


FORMAT = click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    is_eager=True,  # so that an error about another option has the right format
    callback=_store_format,
    help="json prints one object per line, also for errors.",
)


def print_json(row: object) -> None:
    click.echo(msgspec.json.encode(row))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as needed, two spaces apart; the last one may have any length."""
    texts = [columns, *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def iso_time(timestamp_ms: int) -> str | None:
    """A timestamp in UTC; None for a missing one, or one beyond the calendar."""
    if timestamp_ms < 0:
        return None
    try:
        time = EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None
    return time.isoformat(timespec="milliseconds") + "Z"
