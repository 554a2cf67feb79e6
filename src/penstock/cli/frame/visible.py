"""Escapes untrusted text, so that it stays on its line and cannot control the terminal."""

from typing import Final

_CONTROL: Final = {
    code: repr(chr(code))[1:-1] for code in (*range(32), *range(127, 160), 0x2028, 0x2029)
}


def visible(text: str) -> str:
    """The text with control characters escaped as in Python."""
    return text.translate(_CONTROL)
