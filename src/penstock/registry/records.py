"""The records of the topic `_schemas`, in the format of Confluent's registry.

Keys and values are JSON. Compaction compares keys byte by byte, so the order of a key's fields is
part of the format.
"""

from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from penstock.registry.schema import Reference, Schema, SchemaType

TOPIC: Final = "_schemas"


class Key(msgspec.Struct, frozen=True, tag_field="keytype"):
    """The key of a record."""


class SchemaKey(Key, frozen=True, tag="SCHEMA"):
    """A version of a subject."""

    subject: str
    version: int
    magic: int = 1


class ConfigKey(Key, frozen=True, tag="CONFIG"):
    """The compatibility level of a subject; subject None: the global level."""

    subject: str | None
    magic: int = 0


class ModeKey(Key, frozen=True, tag="MODE"):
    """The mode of a subject; subject None: the global mode."""

    subject: str | None
    magic: int = 0


class DeleteSubjectKey(Key, frozen=True, tag="DELETE_SUBJECT"):
    """Soft-deletes all versions up to the one in the value."""

    subject: str
    magic: int = 0


class ClearSubjectKey(Key, frozen=True, tag="CLEAR_SUBJECT"):
    """Removes soft-deleted versions. Read, but never written."""

    subject: str
    magic: int = 0


class NoopKey(Key, frozen=True, tag="NOOP"):
    """Marks a position. Confluent's registry ignores its value; ours stores the last id there."""

    magic: int = 0


LogKey: TypeAlias = SchemaKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | NoopKey


class RegistryRecord(NamedTuple):
    """A record; a value of None is a tombstone."""

    key: LogKey
    value: dict[str, Any] | None

    def encoded(self) -> tuple[bytes, bytes | None]:
        value = None if self.value is None else msgspec.json.encode(self.value)
        return msgspec.json.encode(self.key), value


class UnreadableRecord(ValueError):
    """Not a registry record, or of a type that only a newer registry knows."""


_KEY: Final = msgspec.json.Decoder(LogKey)


def read_record(key: bytes | None, value: bytes | None) -> RegistryRecord:
    if key is None:
        raise UnreadableRecord("it has no key")
    try:
        found = _KEY.decode(key)
        data = None if value is None else msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableRecord(str(error)) from None
    return RegistryRecord(found, data)


class SchemaValue(msgspec.Struct, frozen=True):
    """The fields of a version's value that are used here."""

    subject: str
    version: int
    id: int
    schema: str
    deleted: bool = False
    schemaType: SchemaType = SchemaType.AVRO  # noqa: N815  Confluent's name
    references: tuple[Reference, ...] | None = ()


def read_schema(data: dict[str, Any]) -> SchemaValue:
    try:
        return msgspec.convert(data, SchemaValue)
    except msgspec.ValidationError as error:
        raise UnreadableRecord(str(error)) from None


def schema_value(subject: str, version: int, schema_id: int, schema: Schema) -> dict[str, Any]:
    value: dict[str, Any] = {"subject": subject, "version": version, "id": schema_id}
    if schema.type is not SchemaType.AVRO:
        value["schemaType"] = schema.type.value
    if schema.references:
        value["references"] = [msgspec.to_builtins(each) for each in schema.references]
    value["schema"] = schema.text
    value["deleted"] = False
    return value
