"""The columns of a JSON Schema, as an Avro record. Pure."""

from typing import Any, Final

from penstock.errors import ConfigError

_PLAIN: Final = {"string": "string", "integer": "long", "number": "double", "boolean": "boolean"}


def json_columns(schema: Any) -> Any:
    """The record; properties whose types fit no column, such as alternatives, are left out."""
    found = _record(schema, schema, "fields") if isinstance(schema, dict) else None
    if found is None:
        raise ConfigError("schema: confluent-json needs an object with properties as columns")
    return found


def _record(root: Any, node: Any, at: str) -> Any:
    fields = []
    for name, each in node.get("properties", {}).items():
        kind = _type(root, each, f"{at}.{name}", 0)
        if kind is not None:
            fields.append({"name": name, "type": ["null", kind], "default": None})
    return {"type": "record", "name": at, "fields": fields} if fields else None


def _type(root: Any, node: Any, at: str, depth: int) -> Any:
    """The Avro type; None: no column can have this type."""
    reference = node.get("$ref") if isinstance(node, dict) else None
    if isinstance(reference, str) and reference.startswith("#/") and depth < 20:
        found = root
        for part in reference.split("/")[1:]:
            found = found.get(part, {}) if isinstance(found, dict) else {}
        return _type(root, found, at, depth + 1)
    if not isinstance(node, dict) or depth >= 20:
        return None
    kinds = node.get("type")
    some = [each for each in (kinds if isinstance(kinds, list) else [kinds]) if each != "null"]
    if len(some) != 1:
        return None
    (kind,) = some
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == "array":
        items = _type(root, node.get("items"), f"{at}.items", depth + 1)
        return None if items is None else {"type": "array", "items": items}
    if kind == "object":
        if node.get("properties"):
            return _record(root, node, at) if depth < 10 else None
        values = _type(root, node.get("additionalProperties"), f"{at}.values", depth + 1)
        return None if values is None else {"type": "map", "values": values}
    return None
