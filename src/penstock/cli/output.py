"""What commands print: tables for people, one JSON object per line for programs."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import click
import msgspec

from penstock.cli.failure import FORMAT_KEY

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  UTC throughout; "Z" is said where it is printed


def _remember(context: click.Context, _parameter: click.Parameter, output: str) -> str:
    context.meta[FORMAT_KEY] = output
    return output


FORMAT = click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    is_eager=True,  # so that a wrong option is told in the right form
    callback=_remember,
    help="json prints one object per line, errors too.",
)


def print_json(row: object) -> None:
    click.echo(msgspec.json.encode(row))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as need be, two blanks apart; the last one may be of any length."""
    texts = [columns, *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def iso_time(timestamp_ms: int) -> str | None:
    """A record's time in UTC; None where it has none, or one that no calendar has."""
    if timestamp_ms < 0:
        return None
    try:
        time = EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None
    return time.isoformat(timespec="milliseconds") + "Z"
