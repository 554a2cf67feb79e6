"""The columns of a Protobuf message as an Avro record, and a message as a dict."""

from collections.abc import Callable
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor as Field

from penstock.errors import ConfigError

_PLAIN: Final = {
    Field.TYPE_DOUBLE: "double",
    Field.TYPE_FLOAT: "float",
    Field.TYPE_INT64: "long",
    Field.TYPE_UINT64: "long",
    Field.TYPE_INT32: "int",
    Field.TYPE_FIXED64: "long",
    Field.TYPE_FIXED32: "long",
    Field.TYPE_BOOL: "boolean",
    Field.TYPE_STRING: "string",
    Field.TYPE_BYTES: "bytes",
    Field.TYPE_UINT32: "long",
    Field.TYPE_ENUM: "string",
    Field.TYPE_SFIXED32: "int",
    Field.TYPE_SFIXED64: "long",
    Field.TYPE_SINT32: "int",
    Field.TYPE_SINT64: "long",
}


def protobuf_columns(message: Any, at: str = "fields", inside: tuple[str, ...] = ()) -> Any:
    """The Avro record for a message's descriptor."""
    if message.full_name in inside:
        raise ConfigError(f"schema: {message.full_name} contains itself, which a column cannot")
    fields = []
    for each in message.fields:
        kind = _type(each, f"{at}.{each.name}", (*inside, message.full_name))
        fields.append({"name": each.name, "type": ["null", kind], "default": None})
    return {"type": "record", "name": at, "fields": fields}


def _type(field: Any, at: str, inside: tuple[str, ...]) -> Any:
    if _is_map(field):
        return {"type": "map", "values": _one(field.message_type.fields[1], at, inside)}
    kind = _one(field, at, inside)
    return {"type": "array", "items": kind} if field.is_repeated else kind


def _one(field: Any, at: str, inside: tuple[str, ...]) -> Any:
    if field.message_type is not None:
        return protobuf_columns(field.message_type, at, inside)
    return _PLAIN[field.type]


def as_dict(message: Any) -> Callable[[Any], dict[str, Any]]:
    """Turns messages into dicts; unset fields are None, if their presence is tracked."""
    parts = [(each.name, each.has_presence, _value(each)) for each in message.fields]

    def read(found: Any) -> dict[str, Any]:
        return {
            name: None if may_miss and not found.HasField(name) else value(getattr(found, name))
            for name, may_miss, value in parts
        }

    return read


def _value(field: Any) -> Callable[[Any], Any]:
    if _is_map(field):
        one = _plain(field.message_type.fields[1])
        return lambda found: {_text(key): one(each) for key, each in found.items()}
    one = _plain(field)
    if field.is_repeated:
        return lambda found: [one(each) for each in found]
    return one


def _plain(field: Any) -> Callable[[Any], Any]:
    if field.message_type is not None:
        made: list[Callable[[Any], Any]] = []

        def nested(found: Any) -> Any:
            if not made:  # late: a message may contain itself
                made.append(as_dict(field.message_type))
            return made[0](found)

        return nested
    if field.enum_type is not None:
        names = field.enum_type.values_by_number
        return lambda number: names[number].name if number in names else str(number)
    return lambda found: found


def _text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _is_map(field: Any) -> bool:
    kind = field.message_type
    return bool(kind is not None and kind.GetOptions().map_entry)
