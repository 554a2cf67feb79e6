"""Texts that others chose, such that they stay on their line and do not steer a terminal."""

from typing import Final

_CONTROL: Final = {
    code: repr(chr(code))[1:-1] for code in (*range(32), *range(127, 160), 0x2028, 0x2029)
}


def visible(text: str) -> str:
    """With control characters as Python writes them."""
    return text.translate(_CONTROL)
