"""`from_avro`: the fields of Avro values, decoded by fastavro in Spark's Python workers."""

import functools
import io
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf

from penstock.spark.avro.schema import Kind, record_kind

Decode = Callable[[pa.Array], pa.Array]
_BAD: Final = (ArithmeticError, EOFError, LookupError, TypeError, ValueError)
"""What fastavro and Arrow raise for bytes that are none of the schema."""


def from_avro(value: Column, schema: str, *, once: bool = True) -> Column:
    """The record in a binary column, as a struct; null where the bytes are none of the schema.

    Spark decodes a value again for a filter on its fields, as if that cost nothing. `once` forbids
    that, and with it that filters on other columns reach the source.
    """

    def fields(values: pa.Array) -> pa.Array:
        return _decoder(schema)(values)

    # Its stubs know no structs.
    decoded = arrow_udf(fields, record_kind(schema).spark)  # type: ignore[call-overload]
    made: Column = (decoded.asNondeterministic() if once else decoded)(value)
    return made


@functools.lru_cache(maxsize=16)
def _decoder(schema: str) -> Decode:
    """A worker reads a schema once."""
    return decoder(record_kind(schema))


def decoder(kind: Kind) -> Decode:
    """From an array of bytes to one of structs; whatever cannot be read is null."""
    from fastavro import parse_schema, schemaless_reader

    schema: Any = parse_schema(kind.avro)

    def record(value: bytes | None) -> Any:
        if value is None:
            return None
        source = io.BytesIO(value)
        try:
            found = schemaless_reader(source, schema, None)
        except _BAD:
            return None
        return found if source.tell() == len(value) else None

    def column(values: pa.Array) -> pa.Array:
        found = [record(each) for each in values.to_pylist()]
        try:
            return _built(found, kind)
        except (*_BAD, pa.ArrowException):
            # One of them has a number that its column cannot hold: the others are right.
            return pa.concat_arrays(list(_one_by_one(found, kind)))

    return column


def _one_by_one(found: list[Any], kind: Kind) -> Iterator[pa.Array]:
    for each in found:
        try:
            yield _built([each], kind)
        except (*_BAD, pa.ArrowException):
            yield pa.nulls(1, kind.arrow)


def _built(found: list[Any], kind: Kind) -> pa.Array:
    return pa.array(found, kind.read).cast(kind.arrow)
