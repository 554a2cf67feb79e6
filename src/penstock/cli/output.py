"""Output of commands: tables for people; JSON lines or YAML documents for programs.

A command prints rows of plain values with `print_rows`, which selects columns for people; or a
single object with `print_json`, and its own text otherwise.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import click
import msgspec

from penstock.cli.failure import flush_output
from penstock.cli.frame.option import FORMAT, FORMAT_KEY, IS_DATA
from penstock.cli.frame.terminal import note, print_page, styled
from penstock.cli.frame.visible import visible
from penstock.record_view.timestamp import iso_time

__all__ = [
    "FORMAT",
    "Column",
    "human_bytes",
    "is_data",
    "iso_time",
    "notice",
    "print_json",
    "print_rows",
    "print_table",
    "summary",
]

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def chosen_format() -> str:
    context = click.get_current_context(silent=True)
    return "text" if context is None else context.meta.get(FORMAT_KEY, "text")


def is_data() -> bool:
    """Whether the output is for a program (JSON or YAML)."""
    return chosen_format() in IS_DATA


def notice(text: str) -> None:
    """Print a server's status message. If standard output is closed, the server continues."""
    try:
        click.echo(text)
    except OSError:
        with suppress(OSError):
            flush_output()  # drops it


@contextmanager
def summary(count: Callable[[], int], text: Callable[[], str]) -> Iterator[None]:
    """Print a summary after the body, also after Ctrl-C.

    If the command fails before it did anything, only its error is printed.
    """
    is_told = True
    try:
        yield
    except Exception:
        is_told = count() > 0
        raise
    finally:
        if is_told:
            note(text())


def print_json(row: object) -> None:
    """Print an object as data: a line of JSON, or a YAML document."""
    if chosen_format() == "yaml":
        from penstock.cli.frame.yaml_text import yaml_text  # late: rarely needed

        click.echo("---\n" + yaml_text(msgspec.to_builtins(row)), nl=False)
    else:
        click.echo(msgspec.json.encode(row))


def print_result(text: str, row: Mapping[str, Any]) -> None:
    """Print what a command did: a sentence for people, an object for programs."""
    if is_data():
        print_json(row)
    else:
        click.echo(text)


def plain(value: Any) -> str:
    """A value as text for people."""
    match value:
        case None | "" | [] | ():
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ",".join(map(str, value))
        case float():
            return f"{value:.3f}" if value else "0"
        case _:
            return str(value)


def human_bytes(value: int | None) -> str:
    """1536 becomes 1.5 KiB."""
    if value is None:
        return "-"
    number, unit = float(value), UNITS[0]
    for unit in UNITS:
        if abs(number) < 1024 or unit == UNITS[-1]:
            break
        number /= 1024
    return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"


class Column(NamedTuple):
    """A table column: the value of `key`, formatted by `shown`; if `is_wide`, only
    in wide tables.
    """

    title: str
    key: str
    shown: Callable[[Any], str] = plain
    is_wide: bool = False


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[Column]) -> None:
    """Print rows in the chosen format. Data has all values; a table has only the columns."""
    if is_data():
        for each in rows:
            print_json(each)
        return
    wide = chosen_format() == "wide"
    shown = [each for each in columns if wide or not each.is_wide]
    print_table(
        [each.title for each in shown],
        [[each.shown(row[each.key]) for each in shown] for row in rows],
    )


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as needed, two spaces apart; the last one may have any length."""
    print_page(table_lines(columns, rows))


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    texts = [columns, *([visible(str(cell)) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in texts
    ]
    return [styled(lines[0], bold=True), *lines[1:]]


def print_state(text: str, *, good: bool) -> None:
    """Print a line, green if all is well, else red."""
    click.echo(styled(text, fg="green" if good else "red"))
