"""Messages as JSON, as Kafka's own converters write them."""

from base64 import b64encode
from typing import Any

import msgspec

from penstock.types import uuid_text
from penstock.wire.schema import Array, Kind, Message, fields


def fields_shown(message: Message, version: int) -> dict[str, Any]:
    """What the version carries, by the names of Kafka's schemas; tags only where they are set."""
    return {
        _camel(field.name): _shown(getattr(message, field.name), field.kind, version)
        for field in fields(type(message), version)
        if field.tag is None or getattr(message, field.name) != field.default
    }


def json_text(shown: dict[str, Any]) -> str:
    return msgspec.json.encode(shown).decode()


def _shown(value: Any, kind: Kind, version: int) -> Any:
    if isinstance(value, Message):
        return fields_shown(value, version)
    if isinstance(kind, Array) and value is not None:
        return [_shown(each, kind.item, version) for each in value]
    if kind == "uuid":
        return uuid_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)
