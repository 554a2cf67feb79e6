"""Avro without a registry: single-object encoding, whose bytes name their writer's schema.

A record begins with C3 01 and the fingerprint of the schema that wrote it (Avro's specification,
"Single-object encoding"). A reader that knows older and newer schemas resolves them to its own, so
a schema can change in both directions.
"""

import io
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import fastavro
from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form

MAGIC: Final = b"\xc3\x01"
HEADER_BYTES: Final = 10

AvroSchema: TypeAlias = str | list[Any] | dict[str, Any]
"""A schema as in JSON: a name, a union, or an object."""


class Avro:
    """Writes with `schema`; reads what it or one of `also` wrote, resolved to `schema`."""

    def __init__(self, schema: AvroSchema, *, also: Sequence[AvroSchema] = ()) -> None:
        self._schema = parse_schema(schema)
        self._head = MAGIC + _fingerprint(schema)
        self._writers = {self._head[2:]: self._schema}
        for each in also:
            self._writers[_fingerprint(each)] = parse_schema(each)

    def serialize(self, value: object, /) -> bytes:
        out = io.BytesIO()
        out.write(self._head)
        fastavro.schemaless_writer(out, self._schema, value)
        return out.getvalue()

    def deserialize(self, data: bytes, /) -> object:
        if data[:2] != MAGIC or len(data) < HEADER_BYTES:
            raise ValueError("not Avro's single-object encoding: it begins with C3 01")
        writer = self._writers.get(data[2:HEADER_BYTES])
        if writer is None:
            raise ValueError(
                f"written with the unknown schema {data[2:HEADER_BYTES].hex()}: pass it in `also`"
            )
        return fastavro.schemaless_reader(io.BytesIO(data[HEADER_BYTES:]), writer, self._schema)


def _fingerprint(schema: AvroSchema) -> bytes:
    """Little-endian, as fastavro returns it."""
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))
