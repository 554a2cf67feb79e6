"""An answer as lines that a person can compare: a path, and its value."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from zlib import crc32

from differential.batches import HEADER_FIELDS
from differential.rules import EVERYWHERE, RULES, Rule
from penstock.errors import ErrorCode
from penstock.record.batch import CorruptBatch, batches, crc_matches
from penstock.record.invalid import InvalidRecord
from penstock.record.record import records
from penstock.wire.schema import Array, Kind, Message, fields

Flat = dict[str, str]

_fields = cache(fields)


def flat(message: Message, version: int, more: Mapping[str, Rule]) -> Flat:
    """Path to text for every field that `version` carries."""
    rules = {**RULES.get(type(message).__name__, {}), **more}
    return dict(_struct("", "", message, version, rules))


def _struct(
    path: str, where: str, message: Message, version: int, rules: Mapping[str, Rule]
) -> Iterator[tuple[str, str]]:
    """`path` has indexes and is printed; `where` has none and is used to find rules."""
    dot = "." if path else ""
    for field in _fields(type(message), version):
        yield from _value(
            f"{path}{dot}{field.name}",
            f"{where}.{field.name}" if where else field.name,
            field.kind,
            getattr(message, field.name),
            version,
            rules,
        )


def _value(
    path: str, where: str, kind: Kind, value: Any, version: int, rules: Mapping[str, Rule]
) -> Iterator[tuple[str, str]]:
    rule = rules.get(where) or EVERYWHERE.get(where.rpartition(".")[2])
    if rule is not None:
        value = rule(value)
    if isinstance(kind, Array) and isinstance(value, list | dict):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        yield f"{path}.count", str(len(value))
        for key, item in items:
            if isinstance(item, Message):
                yield from _struct(f"{path}[{key}]", where, item, version, rules)
            else:
                yield f"{path}[{key}]", repr(item)
    elif isinstance(value, Message):
        yield from _struct(path, where, value, version, rules)
    elif kind == "records" and value is not None:
        yield from _records(path, where, bytes(value), rules)
    elif path.endswith("error_code"):
        yield path, f"{value} {ErrorCode(value).name}"
    else:
        yield path, _text(value)


def _records(
    path: str, where: str, data: bytes, rules: Mapping[str, Rule]
) -> Iterator[tuple[str, str]]:
    end = 0
    try:
        for number, (at, header) in enumerate(batches(data)):
            end = at + header.size_bytes
            batch = f"{path}.batches[{number}]"
            for name in HEADER_FIELDS:
                value = getattr(header, name)
                if name == "crc":
                    value = crc_matches(data, header, at)
                rule = rules.get(f"{where}.batches.{name}")
                yield f"{batch}.{name}", _text(rule(value) if rule else value)
            for record in records(data[at:end], header, 1 << 24):
                shown = (record.timestamp, record.key, record.value, record.headers)
                rule = rules.get(f"{where}.batches.records")
                yield f"{batch}.records[{record.offset}]", _text(rule(shown) if rule else shown)
    except (CorruptBatch, InvalidRecord) as error:
        yield f"{path}.corrupt", str(error)
    yield f"{path}.cut_bytes", str(len(data) - end)


def _text(value: object) -> str:
    if isinstance(value, bytes) and len(value) == 16:
        symbol = value.rstrip(b"\0")
        return symbol.decode() if symbol[:1] == b"~" else f"id {value.hex()}"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}… (CRC {crc32(text.encode()):08x})"


ABSENT = "absent"

Difference = tuple[str, str, str]
"""A path, and the values there on the left and on the right."""


def difference(left: Flat, right: Flat) -> list[Difference]:
    """The paths at which the two differ."""
    paths = [*left, *(path for path in right if path not in left)]
    pairs = ((path, left.get(path, ABSENT), right.get(path, ABSENT)) for path in paths)
    return [(path, there, here) for path, there, here in pairs if there != here]
