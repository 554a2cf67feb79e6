"""Terminal features: colours, questions, pages, and redrawn lines."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import IO

import click

from penstock.cli.frame.option import QUIET_KEY, YES_KEY
from penstock.cli.frame.visible import visible
from penstock.errors import ConfigError


def is_terminal(stream: IO[str]) -> bool:
    """Whether colours, pages and redrawn lines work there."""
    return is_typed(stream) and os.environ.get("TERM") != "dumb"


def is_typed(stream: IO[str]) -> bool:
    """Whether the stream is a terminal, so that a person can answer."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def has_colours(stream: IO[str]) -> bool:
    """Any value of NO_COLOR except an empty one disables colours: see https://no-color.org."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def styled(text: str, **style: object) -> str:
    """The text for standard output, styled only on a terminal with colours."""
    return click.style(text, **style) if has_colours(sys.stdout) else text  # type: ignore[arg-type]


def is_quiet() -> bool:
    return _given(QUIET_KEY)


def note(text: str) -> None:
    """Print a remark to standard error, unless --quiet was given."""
    if not is_quiet():
        click.echo(text, err=True)


def warn(text: str) -> None:
    note(f"penstock: warning: {visible(text)}")


def asks() -> bool:
    """Whether `confirm` will ask."""
    return not _given(YES_KEY) and is_typed(sys.stdin)


def confirm(question: str) -> None:
    """Ask before something is destroyed, if a terminal of any kind is attached.

    Scripts are not asked. If the user answers no, the command ends.
    """
    if not asks():
        return
    if not is_typed(sys.stderr):
        raise NotConfirmed("nothing was done: standard error cannot show the question; pass --yes")
    if not click.confirm(question, err=True):
        raise NotConfirmed("nothing was done")


class NotConfirmed(ConfigError):
    """The user answered no, or could not be asked."""


def print_page(lines: Sequence[str]) -> None:
    """Print lines, with a pager if the terminal is too low for them."""
    height = shutil.get_terminal_size().lines
    if len(lines) < height or not (is_terminal(sys.stdout) and is_terminal(sys.stdin)):
        for line in lines:
            click.echo(line)
        return
    os.environ.setdefault("LESS", "FRX")
    click.echo_via_pager("\n".join(lines) + "\n", color=has_colours(sys.stdout))


def _given(key: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(key))
