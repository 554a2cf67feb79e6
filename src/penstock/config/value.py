"""Setting values and their texts, as Kafka writes and reads them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from math import isinf, isnan
from typing import TypeAlias

LONG_MAX = (1 << 63) - 1
INT_MAX = (1 << 31) - 1


class Kind(IntEnum):
    """Kafka's ConfigDef types, numbered as DescribeConfigs sends them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class Password:
    """A secret; only code that names `value` sees it, so that no log or repr gives it away."""

    value: str

    def __repr__(self) -> str:
        return "[hidden]"


Value: TypeAlias = bool | int | float | str | tuple[str, ...] | Password | None


def render(value: Value) -> str | None:
    """Kafka's text form of a value; None stays None, a password stays hidden."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return _java_double(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def _java_double(value: float) -> str:
    """As Java prints it: plain from 10^-3 up to 10^7, else as 1.5E10."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(value, "f") if "e" in repr(value) else repr(value)
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = _decimal(value)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decimal(value: float) -> tuple[str, str, int]:
    from decimal import Decimal  # late: only very large or small doubles need it

    number = Decimal(repr(value)).normalize()
    digits = "".join(map(str, number.as_tuple().digits))
    return "-" if value < 0 else "", digits, number.adjusted()


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in {"true", "false"}:
        raise ValueError(text)
    return lowered == "true"


def _integer(text: str) -> int:
    # Python's int() also takes 1_000 and other scripts' digits, which Kafka's brokers would not.
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(text)
    return int(text)


def _double(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    value = float(text)
    if isnan(value):
        raise ValueError(text)
    return value


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text else ()


PARSERS: dict[Kind, Callable[[str], Value]] = {
    Kind.BOOLEAN: _boolean,
    Kind.STRING: str,
    Kind.INT: _integer,
    Kind.SHORT: _integer,
    Kind.LONG: _integer,
    Kind.DOUBLE: _double,
    Kind.LIST: _items,
    Kind.CLASS: str,
    Kind.PASSWORD: Password,
}
