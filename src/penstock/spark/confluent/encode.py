"""Encodes structs as values with a schema id."""

import io
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from math import isfinite
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from penstock.errors import ConfigError
from penstock.record_view.registry import MAGIC, RegisteredSchema, SchemaNotFound
from penstock.spark.avro.values import BAD
from penstock.spark.confluent.values import (
    FORMATS,
    expanded_schema,
    message_class,
    registry_of,
)

Write: TypeAlias = Callable[[Any], bytes]
"""Encodes a row's value, without the prefix."""


class BadValue(ConfigError):
    """A row that its schema does not allow."""


@cache
def encoder(name: str, url: str, subject: str, schema: str) -> Callable[[pa.Array], pa.Array]:
    """Turns structs into bytes. Registers the schema; if it is empty, uses the subject's latest."""
    registry = registry_of(url)
    try:
        if schema:
            schema_id = registry.register(subject, schema, FORMATS[name])
            known = registry.by_id(schema_id)
        else:
            known = registry.latest(subject)
            schema_id = known.id
    except SchemaNotFound:
        raise ConfigError(
            f"the registry has no subject {subject!r}: give a schema by option valueSchema"
        ) from None
    if known.schema_type != FORMATS[name]:
        raise ConfigError(f"subject {subject!r} has schemas of {known.schema_type}, not {name}")
    prefix = bytes([MAGIC]) + schema_id.to_bytes(4)
    write = _writer(name, url, schema_id, known)

    def one(row: Any) -> bytes | None:
        if row is None:
            return None
        try:
            return prefix + write(row)
        except (*BAD, AttributeError) as error:
            about = f"a row does not fit schema {schema_id} of {subject!r}"
            raise BadValue(f"{about}: {error}") from None

    def column(structs: pa.Array) -> pa.Array:
        rows = structs.to_pylist(maps_as_pydicts="strict")
        return pa.array([one(each) for each in rows], pa.binary())

    return column


def _writer(name: str, url: str, schema_id: int, schema: RegisteredSchema) -> Write:
    match name:
        case "confluent-avro":
            return avro_writer(expanded_schema(registry_of(url), schema))
        case "confluent-json":
            return json_writer
        case _:
            return protobuf_writer(message_class(registry_of(url).files(schema_id, schema)))


def avro_writer(node: Any) -> Write:
    """The writer raises ValueError for a row that does not fit without a change."""
    from fastavro import parse_schema, schemaless_writer
    from fastavro.validation import ValidationError, validate

    parsed: Any = parse_schema(node)
    has_times = b'"timestamp-' in msgspec.json.encode(node)

    def write(row: Any) -> bytes:
        data = io.BytesIO()
        row = _in_utc(row) if has_times else row
        try:
            validate(row, parsed)  # the writer alone cuts off fractions and accepts longs as ints
        except ValidationError as error:
            raise ValueError(" ".join(str(each) for each in error.errors)) from None
        # Unless it is strict, the writer leaves out columns that the schema does not have.
        schemaless_writer(data, parsed, row, strict_allow_default=True)
        return data.getvalue()

    return write


def _in_utc(value: Any) -> Any:
    """Times without a zone in UTC: fastavro would take them for times in the machine's zone."""
    match value:
        case dict():
            return {key: _in_utc(each) for key, each in value.items()}
        case list():
            return [_in_utc(each) for each in value]
        case datetime(tzinfo=None):
            return value.replace(tzinfo=UTC)
        case _:
            return value


def json_writer(row: Any) -> bytes:
    return msgspec.json.encode(_without_nulls(row))


def protobuf_writer(kind: Any) -> Write:
    """Encodes by a message class."""
    from google.protobuf.json_format import ParseDict, ParseError

    def write(row: Any) -> bytes:
        try:
            message = ParseDict(_plain(row), kind())
        except ParseError as error:
            raise ValueError(str(error)) from None
        # Deterministic: otherwise the order of maps differs between processes, and so between
        # attempts of a task, and an attempt that resumes in a transaction would not recognize its
        # rows.
        return b"\x00" + bytes(message.SerializeToString(deterministic=True))

    return write


def _without_nulls(value: Any) -> Any:
    """Drop nulls: a null means a missing property, since schemas rarely allow null."""
    match value:
        case dict():
            return {key: _without_nulls(each) for key, each in value.items() if each is not None}
        case list():
            return [_without_nulls(each) for each in value]
        case float() if not isfinite(value):
            raise ValueError(f"JSON has no number {value}")  # msgspec would write null
        case _:
            return value


def _plain(value: Any) -> Any:
    """The value in Protobuf's JSON mapping."""
    match value:
        case dict():
            return {key: _plain(each) for key, each in value.items() if each is not None}
        case list():
            return [_plain(each) for each in value]
        case bytes():
            return b64encode(value).decode()
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case float() if not isfinite(value):
            return str(value).replace("nan", "NaN").replace("inf", "Infinity")
        case _:
            return value
