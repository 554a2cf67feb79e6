"""Decodes values by the schemas of their ids."""

import io
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
import pyarrow as pa

from penstock.errors import ConfigError
from penstock.record_view.decoded import Undecodable
from penstock.record_view.registry import (
    PREFIX_BYTES,
    RegisteredSchema,
    RegistryFailed,
    SchemaNotFound,
    SchemaRegistry,
    has_schema_id,
    message_at,
    message_path,
)
from penstock.spark.avro.schema import record_type
from penstock.spark.avro.values import BAD, Decode, built
from penstock.spark.confluent.fit import fitting
from penstock.spark.confluent.json_columns import json_columns
from penstock.spark.confluent.json_values import JsonReader
from penstock.spark.confluent.merged import defaults, expanded, filling, merged
from penstock.spark.confluent.not_readable import NotReadable
from penstock.spark.confluent.protobuf_columns import as_dict, protobuf_columns

FORMATS: Final = {
    "confluent-avro": "AVRO",
    "confluent-protobuf": "PROTOBUF",
    "confluent-json": "JSON",
}
"""The formats, and their schema types."""
Read: TypeAlias = Callable[[bytes], Any]
"""Reads the fields of one value without its prefix; raises one of `BAD` if it does not fit."""


UNFIT: Final = object()
"""Stands for a value that was read but that its column cannot hold."""
MOST_PREFIXES: Final = 10_000

SETTLE_S: Final = 3.0
"""How far one registry instance may lag behind another on which a schema was just registered."""
ASK_AGAIN_S: Final = 0.2


class ColumnsChanged(ConfigError):
    """A value does not fit the columns of the query; it may fit the subject's current columns."""


@cache
def registry_of(url: str) -> SchemaRegistry:
    """One registry client, with its cache, for all tasks of a Python worker."""
    return SchemaRegistry(url)


def reader_schema(name: str, url: str, subject: str) -> str:
    """The columns of a subject, as the text of an Avro record. Calls the registry."""
    registry = registry_of(url)
    try:
        versions = registry.versions(subject)
    except SchemaNotFound:
        raise ConfigError(
            f"the registry has no subject {subject!r}; name another by the option valueSubject, or "
            "the columns by valueSchema"
        ) from None
    for each in versions:
        if each.schema_type != FORMATS[name]:
            raise ConfigError(f"subject {subject!r} has schemas of {each.schema_type}, not {name}")
    try:
        columns = merged([_columns(registry, each) for each in versions])
    except NotReadable as error:
        raise ConfigError(f"subject {subject!r}: {error}") from None
    return msgspec.json.encode(columns).decode()


def decoder(
    name: str, schema: str, url: str, subject: str = "", *, settle_s: float = SETTLE_S
) -> Decode:
    """Returns a function from an array of bytes to one of structs; an unreadable value is null.

    Null must be final: one query drops such values and another makes them dead letters, so a value
    that becomes readable later would be lost. Therefore the task fails if the registry fails, or if
    the `subject` of these columns has others by now. All values were written before their task
    starts: an id that is still unknown `settle_s` later stays unknown.
    """
    kind = record_type(schema)
    registry, columns = registry_of(url), msgspec.json.decode(schema)
    missing, fill = defaults(columns), filling(columns)
    readers, unknown = _readers(name, url), set[int]()
    fits, settled_at = fitting(kind.read), time.monotonic() + settle_s

    def reader_of(schema_id: int) -> Read | None:
        while True:
            try:
                return _reader(name, registry, schema_id)
            except SchemaNotFound:
                if time.monotonic() >= settled_at:
                    return None
            except RegistryFailed:
                raise
            except (ConfigError, NotReadable):  # no columns, e.g. of a type that contains itself
                check_columns()
                return None
            time.sleep(ASK_AGAIN_S)

    def check_columns() -> None:
        if subject and reader_schema(name, url, subject) != schema:
            raise ColumnsChanged(
                f"a value does not fit the columns that subject {subject!r} had when the query was "
                "started, and it has others now: start the query again"
            )

    def reader_at(prefix: bytes) -> Read | None:
        """The reader of values with this prefix; None if there is none."""
        if not has_schema_id(prefix):
            return None
        schema_id = int.from_bytes(prefix[1:])
        if schema_id in unknown:
            return None
        if schema_id not in readers:
            made = reader_of(schema_id)
            if made is None:
                unknown.add(schema_id)
                return None
            readers[schema_id] = made
        return readers[schema_id]

    def fields_of(read: Read) -> Read:
        """Fields as the column has them, or None; unchecked if every value of the reader fits."""
        is_sure = fits(missing) and isinstance(read, AvroReader) and read.is_of(kind.read)

        def fields(data: bytes) -> Any:
            try:
                found = read(data)
            except BAD:
                return None
            if subject and isinstance(read, JsonReader):
                if not read.fits(found):
                    return None
                if not fits(found):
                    found = read.declared(found)
            found = found if fill is None else fill(found)
            return found if is_sure or fits(found) else UNFIT

        if not is_sure or missing:
            return fields
        assert isinstance(read, AvroReader)
        return read.read_or_none

    by_prefix: dict[bytes, Read | None] = {}

    def record(value: bytes | None) -> Any:
        if value is None:
            return None
        prefix = value[:PREFIX_BYTES]
        try:
            fields = by_prefix[prefix]
        except KeyError:
            read = reader_at(prefix)
            fields = None if read is None else fields_of(read)
            if len(by_prefix) < MOST_PREFIXES:  # bounded, because values are untrusted input
                by_prefix[prefix] = fields
        return None if fields is None else fields(value[PREFIX_BYTES:])

    def column(values: pa.Array) -> pa.Array:
        found = [record(each) for each in values.to_pylist()]
        unread = found.count(None)
        made = built([None if each is UNFIT else each for each in found], kind)
        if made.null_count > unread:
            check_columns()
        return made

    return column


@cache
def _readers(_name: str, _url: str) -> dict[int, Read]:
    """Readers by schema id, for all tasks of a Python worker: an id never changes its meaning."""
    return {}


def _columns(registry: SchemaRegistry, schema: RegisteredSchema) -> Any:
    match schema.schema_type:
        case "AVRO":
            return expanded_schema(registry, schema)
        case "JSON":
            return json_columns(msgspec.json.decode(schema.schema))
        case _:
            files = registry.files(schema.id, schema)
            return protobuf_columns(message_class(files).DESCRIPTOR)


def _reader(name: str, registry: SchemaRegistry, schema_id: int) -> Read:
    schema = registry.by_id(schema_id)
    if schema.schema_type != FORMATS[name]:
        raise NotReadable(f"schema {schema_id} is {schema.schema_type}")
    match schema.schema_type:
        case "AVRO":
            return AvroReader(expanded_schema(registry, schema))
        case "JSON":
            return JsonReader(schema.schema)
        case _:
            return _protobuf(registry.files(schema_id, schema))


def expanded_schema(registry: SchemaRegistry, schema: RegisteredSchema) -> Any:
    named = {}
    for each in registry.imported(schema):
        node: Any = msgspec.json.decode(each.schema)
        space = node.get("namespace")
        named[f"{space}.{node['name']}" if space else node["name"]] = node
    node = expanded(msgspec.json.decode(schema.schema), named)
    if not isinstance(node, dict) or node["type"] != "record":
        raise NotReadable("the schema is not a record, whose fields become columns")
    return node


class AvroReader:
    """Reads the values of one schema. A second call per value would cost as much as a field."""

    def __init__(self, node: Any) -> None:
        from fastavro import parse_schema, schemaless_reader

        kind = record_type(msgspec.json.encode(node).decode())
        schema: Any = parse_schema(kind.avro)
        self._columns = {each.name: each.type for each in kind.read}

        def read_or_none(data: bytes) -> Any:
            source = io.BytesIO(data)
            try:
                found = schemaless_reader(source, schema, None)
            except BAD:
                return None
            return found if source.tell() == len(data) else None  # no bytes may be left over

        self.read_or_none: Read = read_or_none

    def __call__(self, data: bytes) -> Any:
        found = self.read_or_none(data)
        if found is None:
            raise NotReadable("the bytes are not of this schema")
        return found

    def is_of(self, columns: pa.StructType) -> bool:
        """Whether everything that it reads has the types of these columns."""
        own = self._columns
        return all(own.get(each.name, each.type) == each.type for each in columns)


def _protobuf(files: list[Any]) -> Read:
    from google.protobuf.message import DecodeError

    made: dict[str, tuple[Any, Callable[[Any], dict[str, Any]]]] = {}

    def read(data: bytes) -> Any:
        try:
            path, rest = message_path(data)
            name = message_at(files[-1], path)
        except Undecodable as error:
            raise NotReadable(str(error)) from None
        if name not in made:
            kind = _class(files, name)
            made[name] = kind, as_dict(kind.DESCRIPTOR)
        kind, fields = made[name]
        try:
            return fields(kind.FromString(rest))
        except DecodeError as error:
            raise NotReadable(str(error)) from None

    return read


def message_class(files: list[Any]) -> Any:
    """The first message of a schema, which serializers write by default."""
    return _class(files, message_at(files[-1], [0]))


def _class(files: list[Any], name: str) -> Any:
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for each in _known(files):
        pool.AddSerializedFile(each)
    for each in files:
        pool.AddSerializedFile(each.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def _known(files: list[Any]) -> Iterator[bytes]:
    """Google's own files that these files import."""
    from google.protobuf import any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2
    from google.protobuf import wrappers_pb2 as wrappers

    wanted = {name for each in files for name in each.dependency}
    for module in (any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers):
        if module.DESCRIPTOR.name in wanted:
            yield module.DESCRIPTOR.serialized_pb
