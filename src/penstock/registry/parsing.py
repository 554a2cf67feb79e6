"""Parses schemas of all types, with a cache."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from penstock.registry import errors
from penstock.registry.formats.parsed import BrokenSchema, Imported, ParsedSchema
from penstock.registry.schema import Schema, SchemaType
from penstock.registry.state import RegistryState, referenced

REMEMBERED: Final = 1_000
REMEMBERED_CHARS: Final = 8_000_000
"""The length of their texts; once parsed, a schema takes some fifty times as much."""


class Parser:
    """Parses against the references of the current state. Not thread-safe."""

    def __init__(self, state: Callable[[], RegistryState]) -> None:
        self._state = state
        self._known: OrderedDict[tuple[Schema, tuple[Schema, ...]], ParsedSchema] = OrderedDict()
        self._chars = 0

    def __call__(self, schema: Schema) -> ParsedSchema:
        """The parsed schema; `RegistryError` 42201 if it is broken."""
        imported = list(referenced(self._state(), schema.references))
        key = (schema, tuple(each for _, each in imported))
        found = self._known.get(key)
        if found is None:
            try:
                found = parsed(schema.type, schema.text, [(n, each.text) for n, each in imported])
                found.canonical.encode()
            except UnicodeEncodeError:
                text = "it has half a surrogate pair, which is not a character"
                raise errors.invalid_schema(text) from None
            except BrokenSchema as error:
                raise errors.invalid_schema(str(error)) from None
            self._known[key] = found
            self._chars += _chars(*key)
            while len(self._known) > REMEMBERED or self._chars > REMEMBERED_CHARS:
                forgotten, _ = self._known.popitem(last=False)
                self._chars -= _chars(*forgotten)
        else:
            self._known.move_to_end(key)
        return found


def _chars(schema: Schema, imported: tuple[Schema, ...]) -> int:
    return sum(len(each.text) for each in (schema, *imported))


def parsed(kind: SchemaType, text: str, imported: Imported) -> ParsedSchema:
    # Late imports: each format needs a library of its own.
    match kind:
        case SchemaType.AVRO:
            from penstock.registry.formats.avro import parse_avro

            return parse_avro(text, imported)
        case SchemaType.JSON:
            from penstock.registry.formats.json_schema import parse_json_schema

            return parse_json_schema(text, imported)
        case SchemaType.PROTOBUF:
            from penstock.registry.formats.protobuf import parse_protobuf

            return parse_protobuf(text, imported)
