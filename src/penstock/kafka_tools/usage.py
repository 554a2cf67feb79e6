"""Prints `--help` of a tool from its option table."""

import shutil
from textwrap import wrap

from penstock.kafka_tools.options import Option, Table, Takes

COLUMN = 40


def usage(table: Table) -> str:
    width = max(60, min(shutil.get_terminal_size().columns, 120))
    lines = [table.about, f"{'Option':<{COLUMN}} Description", f"{'------':<{COLUMN}} -----------"]
    for option in sorted(table.all_options(), key=lambda each: each.name):
        lines += _rows(option, width)
    for name, command in table.commands.items():
        lines += ["", f"{name}: {command.about}"]
        for option in command.options:
            lines += _rows(option, width)
    return "\n".join(lines)


def _rows(option: Option, width: int) -> list[str]:
    names = ", ".join(_spelled(each) for each in (option.name, *option.also))
    value = {
        Takes.NOTHING: "",
        Takes.ONE: f" <{option.metavar}>",
        Takes.OPTIONAL: f" [{option.metavar}]",
        Takes.MANY: f" <{option.metavar}>...",
    }[option.takes]
    about = option.help
    if option.default is not None:
        about += f" (default: {option.default})"
    if option.old:
        about += " (not in today's Kafka)"
    left = f"{names}{value}"
    right = wrap(about, width - COLUMN - 1)
    if len(left) > COLUMN:
        return [left, *(f"{'':<{COLUMN}} {each}" for each in right)]
    first, *rest = right or [""]
    return [f"{left:<{COLUMN}} {first}".rstrip(), *(f"{'':<{COLUMN}} {each}" for each in rest)]


def _spelled(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name}"
