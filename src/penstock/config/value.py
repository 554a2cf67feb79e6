"""Values of settings, and their text form in Kafka."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from math import isinf, isnan
from typing import TypeAlias

LONG_MAX = (1 << 63) - 1
INT_MAX = (1 << 31) - 1


class ConfigType(IntEnum):
    """Kafka's ConfigDef types, numbered as in DescribeConfigs."""

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
    """A secret: only `value` reveals it, no log or repr does."""

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
    """Format a double like Java: plain from 10^-3 to 10^7, else like 1.5E10."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(value, "f") if "e" in repr(value) else repr(value)
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = _decimal(value)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decimal(value: float) -> tuple[str, str, int]:
    from decimal import Decimal  # imported late: only very large or small doubles need it

    number = Decimal(repr(value)).normalize()
    digits = "".join(map(str, number.as_tuple().digits))
    return "-" if value < 0 else "", digits, number.adjusted()


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in {"true", "false"}:
        raise ValueError(text)
    return lowered == "true"


def _integer(text: str) -> int:
    # Python's int() also accepts 1_000 and non-ASCII digits, which Kafka's brokers reject.
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


PARSERS: dict[ConfigType, Callable[[str], Value]] = {
    ConfigType.BOOLEAN: _boolean,
    ConfigType.STRING: str,
    ConfigType.INT: _integer,
    ConfigType.SHORT: _integer,
    ConfigType.LONG: _integer,
    ConfigType.DOUBLE: _double,
    ConfigType.LIST: _items,
    ConfigType.CLASS: str,
    ConfigType.PASSWORD: Password,
}
