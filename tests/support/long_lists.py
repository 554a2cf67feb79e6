"""Requests with very many entries in one of their lists, built from the messages' declarations."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from penstock.types import NO_UUID, Uuid
from penstock.wire.apis import Api
from penstock.wire.schema import Array, Field, Kind, Message, fields

ListPath = tuple[str, ...]
"""The path of fields to a list of a request."""

declared = cache(fields)


NUMBERS: Final = frozenset({"int8", "int16", "int32", "int64", "uint16"})
NAMES: Final = frozenset({"string", "uuid"})
PARTITION: Final = frozenset({"partition", "partition_id", "partition_index", "index"})
"""Field names of a partition's number, which is its name within a topic."""


def lists_of_names(api: Api) -> dict[ListPath, int]:
    """Each list of the request whose entries have a name, an id or a number, with the highest
    version that has it.
    """
    return {
        path: version
        for version in range(api.low, api.high + 1)
        for path in _lists(api.request, version)
    }


def _lists(message: type[Message], version: int) -> Iterator[ListPath]:
    for each in declared(message, version):
        item = each.kind.item if isinstance(each.kind, Array) else each.kind
        if isinstance(each.kind, Array) and _is_named(item, version):
            yield (each.name,)
        if isinstance(item, type):
            yield from ((each.name, *rest) for rest in _lists(item, version))


def _is_named(item: Kind, version: int) -> bool:
    if isinstance(item, type):
        return any(each.kind in NAMES or _is_partition(each) for each in declared(item, version))
    return item in NAMES or item in NUMBERS


def _is_partition(field: Field) -> bool:
    return field.kind == "int32" and field.name in PARTITION


def has_numbers(message: type[Message], version: int, path: ListPath) -> bool:
    """Whether the entries of that list are numbers, which are decoded very quickly."""
    (kind,) = (each.kind for each in declared(message, version) if each.name == path[0])
    item = kind.item if isinstance(kind, Array) else kind
    if len(path) > 1:
        assert isinstance(item, type)
        return has_numbers(item, version, path[1:])
    return item in NUMBERS


def with_many(message: type[Message], version: int, path: ListPath, count: int) -> Message:
    """The request with `count` different entries in that list, and one in each enclosing list."""
    return _made(message, version, path, count, 0)


def _made(message: type[Message], version: int, path: ListPath, count: int, number: int) -> Message:
    given: dict[str, Any] = {}
    for each in declared(message, version):
        if path and each.name == path[0]:
            if isinstance(each.kind, type):
                given[each.name] = _made(each.kind, version, path[1:], count, number)
            else:
                assert isinstance(each.kind, Array)
                numbers = range(1, count + 1) if len(path) == 1 else (0,)
                item = each.kind.item
                given[each.name] = [
                    _made(item, version, path[1:], count, n)
                    if isinstance(item, type)
                    else _value(item, n)
                    for n in numbers
                ]
        elif isinstance(each.kind, Array):
            if number:  # an entry is not empty: it has one part of each kind
                item = each.kind.item
                one = _made(item, version, (), 1, 0) if isinstance(item, type) else _value(item, 0)
                given[each.name] = [one]
        elif isinstance(each.kind, type) or each.tag is not None:
            continue
        elif (
            each.default in {"", NO_UUID}
            or (number and each.kind == "string")
            or _is_partition(each)
        ):
            given[each.name] = _value(each.kind, number)
    return message(**given)


def _value(kind: Kind, number: int) -> Any:
    """Number 0 gives `t`, an existing topic, group or transaction."""
    match kind:
        case "string":
            return f"one-of-very-many-{number:06d}" if number else "t"
        case "uuid":
            return Uuid(number.to_bytes(16, "big"))
        case "int32" | "int64":
            return number
        case "int8" | "int16" | "uint16":
            return number % 128
        case "bytes" | "records":
            return b""
        case _:
            raise AssertionError(f"no value for {kind}")
