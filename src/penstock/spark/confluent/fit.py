"""Which values a column holds without a change. Pure.

Arrow itself cuts off fractions, and accepts an empty list for a struct.
"""

from collections.abc import Callable, Iterable
from ctypes import c_float
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyarrow import types

Fits: TypeAlias = Callable[[Any], bool]

_LONG: Final = 1 << 63


def fitting(kind: pa.DataType) -> Fits:
    """A test for values that a column of this type holds; Arrow itself checks their size."""
    if types.is_struct(kind):
        return _struct({each.name: fitting(each.type) for each in kind})
    if types.is_list(kind):
        return _list(fitting(kind.value_type))
    if types.is_map(kind):
        return _map(fitting(kind.item_type))
    return next((fits for is_one, fits in _PLAIN if is_one(kind)), _anything)


def _struct(fields: dict[str, Fits]) -> Fits:
    checks = list(fields.items())

    def fits(found: Any) -> bool:
        if not isinstance(found, dict):
            return False
        for name, check in checks:
            part = found.get(name)
            if part is not None and not check(part):
                return False
        return True

    return fits


def _list(one: Fits) -> Fits:
    return lambda found: isinstance(found, list) and _all(one, found)


def _map(one: Fits) -> Fits:
    return lambda found: isinstance(found, dict) and _all(one, found.values())


def _all(one: Fits, parts: Iterable[Any]) -> bool:
    return all(each is None or one(each) for each in parts)


def _whole(found: Any) -> bool:
    return (type(found) is int or (type(found) is float and found.is_integer())) and (
        -_LONG <= found < _LONG
    )


def _single(found: Any) -> bool:
    if type(found) is not float:
        return type(found) is int
    return found != found or c_float(found).value == found  # noqa: PLR0124  NaN


def _double(found: Any) -> bool:
    return type(found) is float or type(found) is int


def _flag(found: Any) -> bool:
    return type(found) is bool


def _text(found: Any) -> bool:
    return type(found) is str or type(found) is bytes  # Arrow decodes bytes


def _anything(_: Any) -> bool:
    return True


_PLAIN: Final[tuple[tuple[Callable[[pa.DataType], bool], Fits], ...]] = (
    (types.is_integer, _whole),
    (types.is_temporal, _whole),
    (types.is_float32, _single),
    (types.is_float64, _double),
    (types.is_boolean, _flag),
    (types.is_string, _text),
)
"""Arrow itself refuses values that do not fit other types."""
