"""`docs/cli.md`, written from the commands' own help."""

from collections.abc import Iterator

import click

from penstock.cli.failure import MEANINGS
from penstock.cli.main import main

WIDTH = 96
INTRODUCTION = """\
# Command line

Written from the commands in `src/penstock/cli` by `scripts/docs.py`: change them there.

Data goes to standard output, everything else to standard error. `--format json` prints one object
per line; a failure is then `{"error": …, "code": …, "message": …}` with the name and the number
of Kafka's error where it is one. Times are ISO-8601 in UTC, in JSON beside milliseconds since 1970.

A broker is found by `--bootstrap`, by the data directory that it runs in (`--dir`), by
`PENSTOCK_BOOTSTRAP` in the environment, else at 127.0.0.1:9092.

## Exit codes

| Code | |
|---|---|
"""


def cli_page() -> str:
    """The whole page."""
    codes = "".join(f"| {code:d} | {meaning} |\n" for code, meaning in MEANINGS.items())
    return INTRODUCTION + codes + "\n" + "\n".join(_sections(main, "penstock", None))


def _sections(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(
        command,
        info_name=name,
        parent=parent,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        **command.context_settings,
    )
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            child = command.get_command(context, each)
            assert child is not None
            yield from _sections(child, each, context)
    else:
        yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
