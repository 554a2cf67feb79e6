"""Request bodies."""

from typing import Any, TypeVar

import msgspec

from penstock.registry import errors
from penstock.registry.errors import RegistryError
from penstock.registry.schema import Reference, Schema, SchemaType


class PostedSchema(msgspec.Struct):
    """A schema to register, look up or compare; the field names are Confluent's."""

    schema: str | None = None
    schemaType: str | None = None  # noqa: N815
    references: list[Reference] | None = None
    id: int | None = None
    version: int | None = None
    metadata: Any = None
    ruleSet: Any = None  # noqa: N815

    def given(self) -> Schema:
        if self.metadata or self.ruleSet:
            raise RegistryError(
                42210, "Data contracts are not supported: leave metadata and ruleSet out"
            )
        if not self.schema:
            raise errors.invalid_schema("Empty schema")
        kind = self.schemaType or SchemaType.AVRO.value
        if kind not in SchemaType.__members__:
            raise errors.invalid_schema(f"Unknown schema type {kind}")
        return Schema(self.schema, SchemaType(kind), tuple(self.references or ()))


class PostedLevel(msgspec.Struct):
    """The body of PUT /config: a compatibility level, and settings that are not supported."""

    compatibility: str | None = None
    normalize: bool | None = None
    alias: str | None = None
    compatibilityGroup: str | None = None  # noqa: N815
    defaultMetadata: Any = None  # noqa: N815
    overrideMetadata: Any = None  # noqa: N815
    defaultRuleSet: Any = None  # noqa: N815
    overrideRuleSet: Any = None  # noqa: N815

    def given(self) -> str:
        for name in self.__struct_fields__:
            if name != "compatibility" and getattr(self, name):
                raise errors.not_permitted(f"The setting {name} is not supported")
        return (self.compatibility or "").upper()


class PostedMode(msgspec.Struct):
    """The body of PUT /mode."""

    mode: str = ""


T = TypeVar("T")


def posted(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RegistryError(400, f"The body is not as it must be: {error}") from None
