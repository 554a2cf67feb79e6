"""Writes JSON-like values as YAML, without a library.

Block style, two spaces; a string is quoted as in JSON, unless it is clearly a word. The output is
YAML 1.2 and, since words such as `yes` are quoted, means the same in 1.1.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

_WORD: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+(),-]+)*")
_MEANS_ELSE: Final = frozenset(
    ["true", "false", "yes", "no", "on", "off", "null", "none", "y", "n", "nan", "inf", "infinity"]
)
"""Words that some version of YAML does not read as text, in upper or lower case."""
_NOT_PRINTABLE: Final = re.compile(r"[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows unescaped, but YAML refuses or takes for a line end."""
_LONGEST_KEY: Final = 1024
"""The longest key that may share a line with its colon; a longer one begins with `? `."""


def yaml_text(value: Any) -> str:
    """The YAML text of a value that JSON can represent, with a final line end."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    match value:
        case dict() if value:
            for key, each in value.items():
                shown = _scalar(str(key))
                if len(shown) > _LONGEST_KEY:
                    yield f"? {shown}"
                    shown = ""
                yield from _entry(f"{shown}:", each)
        case list() | tuple() if value:
            for each in value:
                first, *others = _lines(each)
                yield f"- {first}"
                yield from (f"  {line}" for line in others)
        case _:
            yield _scalar(value)


def _entry(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict | list | tuple) and value:
        yield key
        yield from (f"  {line}" for line in _lines(value))
    else:
        yield f"{key} {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        if _WORD.fullmatch(value) and value.lower() not in _MEANS_ELSE:
            return value
        quoted = json.dumps(value, ensure_ascii=False)
        return _NOT_PRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
    if isinstance(value, float):
        return _float(value)
    return json.dumps(value)


def _float(value: float) -> str:
    if not math.isfinite(value):
        return "null"  # like JSON
    text = repr(value)
    # YAML 1.1 reads a number without a point, such as 1e+16, as text.
    return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text
