"""Marks texts in CSV that a spreadsheet would take for a formula, by a leading `'`. Pure."""

import re
from typing import Final

MARK: Final = "'"
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
NUMBER: Final = re.compile(r"[+-][0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)


def marked(text: str) -> str:
    """Reversible by `unmarked`, so a text that already has a mark gets another one."""
    return MARK + text if _is_formula(text) else text


def unmarked(text: str) -> str:
    return text[1:] if text.startswith(MARK) and _is_formula(text) else text


def _is_formula(text: str) -> bool:
    return text.lstrip(MARK).startswith(FORMULA) and not NUMBER.fullmatch(text)
