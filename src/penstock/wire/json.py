"""Messages as JSON, in the form of Kafka's own JSON converters."""

from base64 import b64encode
from typing import Any

import msgspec

from penstock.types import uuid_text
from penstock.wire.schema import Array, Kind, Message, fields


def json_fields(message: Message, version: int) -> dict[str, Any]:
    """The fields of `version` by Kafka's schema names; tagged fields only if not the default."""
    return {
        _camel(field.name): _json_value(getattr(message, field.name), field.kind, version)
        for field in fields(type(message), version)
        if field.tag is None or getattr(message, field.name) != field.default
    }


def json_text(fields: dict[str, Any]) -> str:
    return msgspec.json.encode(fields).decode()


def _json_value(value: Any, kind: Kind, version: int) -> Any:
    if isinstance(value, Message):
        return json_fields(value, version)
    if isinstance(kind, Array) and value is not None:
        return [_json_value(each, kind.item, version) for each in value]
    if kind == "uuid":
        return uuid_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)
