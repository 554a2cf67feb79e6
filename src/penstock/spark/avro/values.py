"""Decodes Avro values to a column of structs, by fastavro."""

import io
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from penstock.spark.avro.schema import AvroType

Decode = Callable[[pa.Array], pa.Array]
BAD: Final = (ArithmeticError, EOFError, LookupError, TypeError, ValueError)
"""Errors of fastavro and Arrow for bytes that do not fit the schema."""


def decoder(kind: AvroType) -> Decode:
    """Turns an array of bytes into one of structs; a value that cannot be read is null."""
    from fastavro import parse_schema, schemaless_reader

    schema: Any = parse_schema(kind.avro)

    def record(value: bytes | None) -> Any:
        if value is None:
            return None
        source = io.BytesIO(value)
        try:
            found = schemaless_reader(source, schema, None)
        except BAD:
            return None
        return found if source.tell() == len(value) else None

    def column(values: pa.Array) -> pa.Array:
        return built([record(each) for each in values.to_pylist()], kind)

    return column


def built(found: list[Any], kind: AvroType) -> pa.Array:
    """The column of these values; null for one that it cannot hold."""
    try:
        return _built(found, kind)
    except (*BAD, pa.ArrowException):
        # A value has a number that its column cannot hold; the others are right.
        return pa.concat_arrays(list(_one_by_one(found, kind)))


def _one_by_one(found: list[Any], kind: AvroType) -> Iterator[pa.Array]:
    for each in found:
        try:
            yield _built([each], kind)
        except (*BAD, pa.ArrowException):
            yield pa.nulls(1, kind.arrow)


def _built(found: list[Any], kind: AvroType) -> pa.Array:
    return pa.array(found, kind.read).cast(kind.arrow)
