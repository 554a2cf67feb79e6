"""A registered schema: its text, its type, and its references."""

from enum import Enum

import msgspec


class SchemaType(Enum):
    """The types of Confluent's registry."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class Reference(msgspec.Struct, frozen=True):
    """A reference to a version of another subject; `name` is its name in the schema's text."""

    name: str
    subject: str
    version: int


class Schema(msgspec.Struct, frozen=True):
    """A schema. Schemas with the same type, text and references have the same id."""

    text: str
    type: SchemaType = SchemaType.AVRO
    references: tuple[Reference, ...] = ()
