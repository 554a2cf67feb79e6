"""Texts in CSV that a spreadsheet would take for a formula: marked by a `'` before them. Pure."""

import re
from typing import Final

MARK: Final = "'"
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
NUMBER: Final = re.compile(r"[+-][0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)


def marked(text: str) -> str:
    """`unmarked` is the other way, so a text that has a mark already gets one more."""
    return MARK + text if _is_formula(text) else text


def unmarked(text: str) -> str:
    return text[1:] if text.startswith(MARK) and _is_formula(text) else text


def _is_formula(text: str) -> bool:
    return text.lstrip(MARK).startswith(FORMULA) and not NUMBER.fullmatch(text)
