"""What is registered: a schema's text, its type, and the schemas that it refers to."""

from enum import Enum

import msgspec


class SchemaType(Enum):
    """The types that Confluent's registry knows."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class Reference(msgspec.Struct, frozen=True):
    """A version of another subject, under the name by which the schema's text calls it."""

    name: str
    subject: str
    version: int


class Schema(msgspec.Struct, frozen=True):
    """Two schemas with the same type, text and references have the same id."""

    text: str
    type: SchemaType = SchemaType.AVRO
    references: tuple[Reference, ...] = ()
