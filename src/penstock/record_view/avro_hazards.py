"""Finds Avro schemas that a hostile value could use against its reader. Pure.

Items without bytes: a few bytes can declare a billion of them. Types that contain themselves:
fastavro's compiled reader crashes the process when a value is nested too deep.
"""

from collections.abc import Iterator, Mapping
from typing import Any


def has_items_without_bytes(schema: Any) -> bool:
    """Whether an array in a parsed schema has items that take no bytes."""
    named: dict[str, Any] = {}
    for each, _ in _types(schema):
        if isinstance(each, dict) and "name" in each:
            named[each["name"]] = each
    return any(
        isinstance(each, dict)
        and each.get("type") == "array"
        and takes_no_bytes(each["items"], named)
        for each, _ in _types(schema)
    )


def contains_itself(schema: Any) -> bool:
    """Whether a record of a parsed schema may contain itself."""
    return any(isinstance(each, str) and each in within for each, within in _types(schema))


def takes_no_bytes(schema: Any, named: Mapping[str, Any] | None = None) -> bool:
    known = named or {}
    match schema:
        case "null" | {"type": "fixed", "size": 0}:
            return True
        case str():
            others = {name: each for name, each in known.items() if name != schema}
            return schema in known and takes_no_bytes(known[schema], others)
        case {"type": "record" | "error", "fields": fields}:
            return all(takes_no_bytes(each["type"], known) for each in fields)
        case {"type": inner}:
            return takes_no_bytes(inner, known)
        case _:
            return False


def _types(
    schema: Any, within: frozenset[str] = frozenset()
) -> Iterator[tuple[Any, frozenset[str]]]:
    """The schema and all types in it, each with the names of the records around it."""
    yield schema, within
    match schema:
        case list():
            inner, around = schema, within
        case {"type": "record" | "error", "fields": fields}:
            inner, around = [each["type"] for each in fields], within | {schema["name"]}
        case {"type": "array", "items": items}:
            inner, around = [items], within
        case {"type": "map", "values": values}:
            inner, around = [values], within
        case {"type": dict() | list() as nested}:
            inner, around = [nested], within
        case _:
            return
    for each in inner:
        yield from _types(each, around)
