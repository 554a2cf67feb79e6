"""The options that every command has, and the help sections of options."""

from collections.abc import Sequence
from typing import Any, Final

import click

FORMAT_KEY: Final = "penstock.format"
QUIET_KEY: Final = "penstock.quiet"
YES_KEY: Final = "penstock.yes"
"""Keys in click's context under which commands and the error boundary find these options."""

FORMATS: Final = ("text", "wide", "json", "yaml")
IS_DATA: Final = frozenset({"json", "yaml"})
SECTIONS: Final = ("Options", "Connection", "Output")


class ConnectionOption(click.Option):
    """An option about how to reach a cluster."""

    section = "Connection"


class OutputOption(click.Option):
    """An option about how to print a result."""

    section = "Output"


def _store_format(context: click.Context, _parameter: click.Parameter, chosen: str) -> str:
    """Commands only distinguish text from data; `print_json` decides between JSON and YAML."""
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
"""Passes `output`: "text", or "json" for data; `cli.output` prints in the chosen format."""

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
        help="Delete without asking. Commands ask on a terminal only.",
    ),
]


def named_format(args: Sequence[str]) -> str | None:
    """The format in arguments that are not parsed yet."""
    for at, word in enumerate(args):
        if word.startswith("--format="):
            word = word.partition("=")[2]
        elif word == "--format" and at + 1 < len(args):
            word = args[at + 1]
        else:
            continue
        return word if word in FORMATS else None
    return None
