"""Formats times by a pattern of Java's SimpleDateFormat, for `--date-format`. Pure."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

from penstock.kafka_tools.tool import ToolError

USUAL: Final = "yyyy-MM-dd HH:mm:ss:SSS"
_PART: Final = re.compile(r"'(?P<text>(?:[^']|'')*)'|(?P<letter>[A-Za-z])(?P=letter)*|[^A-Za-z']")
_NUMBERS: Final[dict[str, Callable[[datetime], int]]] = {
    "d": lambda at: at.day,
    "D": lambda at: at.timetuple().tm_yday,
    "H": lambda at: at.hour,
    "k": lambda at: at.hour or 24,
    "h": lambda at: at.hour % 12 or 12,
    "K": lambda at: at.hour % 12,
    "m": lambda at: at.minute,
    "s": lambda at: at.second,
    "S": lambda at: at.microsecond // 1000,
    "u": lambda at: at.isoweekday(),
}
"""Pattern letters for numbers; the number of letters is the minimum number of digits."""
_TEXTS: Final[dict[str, tuple[str, str]]] = {
    "a": ("%p", "%p"),
    "E": ("%a", "%A"),
    "z": ("%Z", "%Z"),
    "Z": ("%z", "%z"),
}
"""strftime formats for up to three letters, and for more."""


def java_date(pattern: str, at: datetime) -> str:
    found, end = [], 0
    for match in _PART.finditer(pattern):
        if match.start() != end:
            break
        end = match.end()
        found.append(_part(match, at))
    if end != len(pattern):
        raise ToolError(f"--date-format {pattern}: Unterminated quote")
    return "".join(found)


def _part(match: re.Match[str], at: datetime) -> str:
    letter, count = match["letter"], len(match[0])
    if match["text"] is not None:
        return match["text"].replace("''", "'") or "'"
    match letter:
        case None:
            return match[0]
        case "y" if count == 2:
            return f"{at:%y}"
        case "y":
            return f"{at.year:0{count}}"
        case "M" | "L" if count > 2:
            return f"{at:%b}" if count == 3 else f"{at:%B}"
        case "M" | "L":
            return f"{at.month:0{count}}"
        case "X":
            return _zone(at, count)
        case _ if letter in _NUMBERS:
            return f"{_NUMBERS[letter](at):0{count}}"
        case _ if letter in _TEXTS:
            return at.strftime(_TEXTS[letter][count > 3])
        case _:
            raise ToolError(f"--date-format: Illegal pattern character '{letter}'")


def _zone(at: datetime, count: int) -> str:
    text = f"{at:%z}"
    if text == "+0000":
        return "Z"
    return {1: text[:3], 2: text}.get(count, f"{text[:3]}:{text[3:]}")
