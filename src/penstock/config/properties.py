"""Parses Java's properties syntax, the format of `server.properties`."""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.errors import ConfigError

BLANK = " \t\f"
ENDS_KEY = "=:" + BLANK
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """A key, its value, and the line where it starts."""

    key: str
    value: str
    line: int


def properties(text: str) -> Iterator[Property]:
    """The properties of a text, in order; a key may occur more than once."""
    for number, line in _logical_lines(text):
        end = _key_end(line)
        rest = line[end:].lstrip(BLANK)
        if rest[:1] in {"=", ":"}:
            rest = rest[1:].lstrip(BLANK)
        yield Property(_unescaped(line[:end], number), _unescaped(rest, number), number)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, without comments and blank lines."""
    start, logical = 0, ""
    for number, natural in enumerate(_natural_lines(text), 1):
        line = natural.lstrip(BLANK)
        if not logical:
            start = number
            # A comment can start a logical line, but not a continuation.
            if line[:1] in {"", "#", "!"}:
                continue
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            logical += line[:-1]
            continue
        yield start, logical + line
        logical = ""
    if logical:
        yield start, logical


def _natural_lines(text: str) -> list[str]:
    # str.splitlines would also break at a form feed, which Java treats as white space.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _key_end(line: str) -> int:
    escaped = False
    for at, char in enumerate(line):
        if char in ENDS_KEY and not escaped:
            return at
        escaped = char == "\\" and not escaped
    return len(line)


def _unescaped(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    parts, chars = [], iter(text)
    for char in chars:
        if char != "\\":
            parts.append(char)
            continue
        escape = next(chars, "")
        if escape == "u":
            parts.append(_unicode("".join(next(chars, "") for _ in range(4)), line))
        else:
            parts.append(ESCAPES.get(escape, escape))
    # Java's characters are UTF-16 units: two escapes may form one character.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unicode(digits: str, line: int) -> str:
    if len(digits) != 4 or not all(each in "0123456789abcdefABCDEF" for each in digits):
        raise ConfigError(
            f"line {line}: \\u{digits} is not an escape: four hexadecimal digits must follow \\u"
        )
    return chr(int(digits, 16))
