"""Output of commands as text that is equal in every run: varying parts are replaced."""

import re
from collections.abc import Sequence
from pathlib import Path

from click.testing import CliRunner

from penstock.cli.main import main

FORMATS = ("text", "wide", "json", "yaml")

_MASKS = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "<time>"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "<ms>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"[\w+/]{86}=="), "<hmac>"),
    (re.compile(r"(?<![\w-])(?=[\w-]*[A-Z0-9])[\w-]{22}(?![\w-])"), "<id>"),
    (re.compile(r"\b\d+(\.\d)? ([KMGTP]i)?B\b"), "<size>"),
    (re.compile(r'("?(?:\w+_bytes|pid|bytes)"?: ?)\d+'), r"\1<number>"),
    (re.compile(r"process \d+"), "process <pid>"),
    (re.compile(r'\d+(?= APIs)|(?<="apis":)\d+|(?<=apis: )\d+'), "<number>"),
    (re.compile(r"(?<![\w.])\d+\.\d+(?!\.)(?:e[+-]\d+)?(?![\w.])"), "<number>"),
]


def masked(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "<folder>")
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    text = text.replace('"<id>"', "<id>")  # YAML quotes only some ids
    # Columns are as wide as their widest cell, which may be a replaced one.
    return re.sub(r"(?<=\S)  +(?=\S)", "  ", text)


def block(words: Sequence[str], folder: Path, typed: str = "") -> str:
    """A call and its output, as in a terminal session."""
    done = CliRunner().invoke(main, list(words), input=typed)
    shown = done.stdout + "".join(f"! {line}\n" for line in done.stderr.splitlines())
    if done.exit_code:
        shown += f"[exit code {int(done.exit_code)}]\n"
    return masked(f"$ penstock {' '.join(words)}\n{shown}", folder)
