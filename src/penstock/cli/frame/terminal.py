"""What is only for a terminal: colours, questions, pages, and lines that are drawn again."""

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
    """Whether colours, pages and lines that are drawn again work there."""
    return is_typed(stream) and os.environ.get("TERM") != "dumb"


def is_typed(stream: IO[str]) -> bool:
    """Whether a person is at the other end."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def has_colours(stream: IO[str]) -> bool:
    """See https://no-color.org: whatever NO_COLOR is, unless empty."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def styled(text: str, **style: object) -> str:
    """For standard output: as it is, unless that is a terminal with colours."""
    return click.style(text, **style) if has_colours(sys.stdout) else text  # type: ignore[arg-type]


def is_quiet() -> bool:
    return _given(QUIET_KEY)


def note(text: str) -> None:
    """A remark about what was done, on standard error; not with --quiet."""
    if not is_quiet():
        click.echo(text, err=True)


def warn(text: str) -> None:
    note(f"penstock: warning: {visible(text)}")


def asks() -> bool:
    """Whether `confirm` asks."""
    return not _given(YES_KEY) and is_typed(sys.stdin)


def confirm(question: str) -> None:
    """Ask before something is destroyed, if a person is there to answer, on however plain a
    terminal.

    Scripts are not asked: what they say is what they mean. A no ends the command.
    """
    if not asks():
        return
    if not is_typed(sys.stderr):
        raise NotConfirmed("nothing was done: standard error cannot show the question; pass --yes")
    if not click.confirm(question, err=True):
        raise NotConfirmed("nothing was done")


class NotConfirmed(ConfigError):
    """A person answered no."""


def print_page(lines: Sequence[str]) -> None:
    """Print lines; on a terminal that is too low for them, by a pager."""
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
