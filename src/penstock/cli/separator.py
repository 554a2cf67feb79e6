r"""A separator in an option: any text, in which `\t` means a tab."""

import re
from typing import Any

import click

ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}


def unescaped(text: str) -> str:
    r"""Replace `\t`, `\n`, `\r`, `\0`, `\\` and `\x1f` by the characters they mean."""

    def character(found: re.Match[str]) -> str:
        return chr(int(found[1][1:], 16)) if found[1].startswith("x") else ESCAPES[found[1]]

    return re.sub(r"\\(x[0-9A-Fa-f]{2}|[tnr0\\])", character, text)


class SeparatorType(click.ParamType[str]):
    """The separator between the parts of a line."""

    name = "text"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:  # noqa: ARG002
        return unescaped(value)
