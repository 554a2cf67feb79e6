"""Options that every command has, and the sections of help that options stand in."""

from collections.abc import Sequence
from typing import Any, Final

import click

FORMAT_KEY: Final = "penstock.format"
QUIET_KEY: Final = "penstock.quiet"
YES_KEY: Final = "penstock.yes"
"""Keys in click's context, where commands and the boundary find what was given."""

FORMATS: Final = ("text", "wide", "json", "yaml")
IS_DATA: Final = frozenset({"json", "yaml"})
SECTIONS: Final = ("Options", "Connection", "Output")


class ConnectionOption(click.Option):
    """How a cluster is reached."""

    section = "Connection"


class OutputOption(click.Option):
    """How a result is printed."""

    section = "Output"


def _store_format(context: click.Context, _parameter: click.Parameter, chosen: str) -> str:
    """Commands distinguish text from data only; `print_json` knows whether it is to be YAML."""
    context.meta[FORMAT_KEY] = chosen
    return "json" if chosen in IS_DATA else "text"


def _store(key: str) -> Any:
    def store(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
        context.meta[key] = value

    return store


_FORMAT: Final[dict[str, Any]] = {
    "type": click.Choice(FORMATS),
    "default": "text",
    "show_default": True,
    "is_eager": True,  # so that an error about another option has the right format
    "callback": _store_format,
    "help": "wide: text with more columns. json: one object per line, also for errors. yaml: one "
    "document per object.",
}
FORMAT = click.option("--format", "output", cls=OutputOption, **_FORMAT)
"""Passes `output`: "text", or "json" for data; `cli.output` prints in the format chosen."""

COMMON: Final[list[click.Option]] = [
    OutputOption(["--format", "output"], expose_value=False, **_FORMAT),
    OutputOption(
        ["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_store(QUIET_KEY),
        help="No notes, warnings or progress; only data and errors.",
    ),
    OutputOption(
        ["-y", "--yes"],
        is_flag=True,
        expose_value=False,
        callback=_store(YES_KEY),
        help="Do not ask before something is deleted. Only a terminal is asked.",
    ),
]


def named_format(args: Sequence[str]) -> str | None:
    """The format in words that were not parsed yet."""
    for at, word in enumerate(args):
        if word.startswith("--format="):
            word = word.partition("=")[2]
        elif word == "--format" and at + 1 < len(args):
            word = args[at + 1]
        else:
            continue
        return word if word in FORMATS else None
    return None
