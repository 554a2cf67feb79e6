"""Prints an Avro schema in the form of Java's `Schema.toString()`, which registries store.

Texts with the same meaning in Java become the same text, and so get the same id.
"""

import json
from typing import Any, Final

_RECORD: Final = {"type", "name", "namespace", "doc", "fields", "aliases"}
_FIELD: Final = {"name", "type", "doc", "default", "order", "aliases"}
_ENUM: Final = {"type", "name", "namespace", "doc", "symbols", "default", "aliases"}
_FIXED: Final = {"type", "name", "namespace", "doc", "size", "aliases"}
_PRIMITIVE: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)


def avro_text(node: Any, *, sort_properties: bool = False) -> str:
    """The text of a valid schema; `sort_properties` gives the normalized form."""
    printed = _Printer(sort_properties=sort_properties).schema(node, "")
    return json.dumps(printed, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class _Printer:
    """Walks the JSON; `space` is the enclosing namespace."""

    def __init__(self, *, sort_properties: bool) -> None:
        self._sorted = sort_properties

    def schema(self, node: Any, space: str) -> Any:
        if isinstance(node, list):
            return [self.schema(each, space) for each in node]
        if isinstance(node, str):
            return _reference(node, space)
        kind = node["type"]
        if isinstance(kind, dict | list):
            return self.schema(kind, space)  # Java drops the attributes beside it, too
        match kind:
            case "record" | "error":
                return self._record(node, space)
            case "enum":
                named = self._named(node, space, ("symbols", "default"))
                return self._with_properties(named, node, _ENUM)
            case "fixed":
                named = self._named(node, space, ("size",))
                return self._with_properties(named, node, _FIXED)
            case "array":
                made = {"type": kind, "items": self.schema(node["items"], space)}
                return self._with_properties(made, node, {"type", "items"})
            case "map":
                made = {"type": kind, "values": self.schema(node["values"], space)}
                return self._with_properties(made, node, {"type", "values"})
            case _:
                return self._primitive(kind, node, space)

    def _primitive(self, kind: str, node: Any, space: str) -> Any:
        plain = _reference(kind, space)
        made = self._with_properties({"type": plain}, node, {"type"})
        return made if len(made) > 1 and kind in _PRIMITIVE else plain

    def _record(self, node: Any, space: str) -> dict[str, Any]:
        named = self._named(node, space, ())
        inner = _full_name(node, space).rpartition(".")[0]
        named["fields"] = [self._field(each, inner) for each in node["fields"]]
        return self._with_properties(named, node, _RECORD)

    def _field(self, node: Any, space: str) -> dict[str, Any]:
        made = {"name": node["name"], "type": self.schema(node["type"], space)}
        if node.get("doc") is not None:
            made["doc"] = node["doc"]
        if "default" in node:
            made["default"] = node["default"]
        order = node.get("order", "ascending")
        if order != "ascending":
            made["order"] = order
        if node.get("aliases"):
            made["aliases"] = node["aliases"]
        return made | self._properties(node, _FIELD)

    def _named(self, node: Any, space: str, keys: tuple[str, ...]) -> dict[str, Any]:
        own_space, _, name = _full_name(node, space).rpartition(".")
        made: dict[str, Any] = {"type": node["type"], "name": name}
        if own_space != space:
            made["namespace"] = own_space
        if node.get("doc") is not None:
            made["doc"] = node["doc"]
        return made | {key: node[key] for key in keys if key in node}

    def _with_properties(self, made: dict[str, Any], node: Any, known: set[str]) -> dict[str, Any]:
        made |= self._properties(node, known)
        if "aliases" in known and node.get("aliases"):
            made["aliases"] = node["aliases"]
        return made

    def _properties(self, node: Any, known: set[str]) -> dict[str, Any]:
        names = [name for name in node if name not in known]
        return {name: node[name] for name in (sorted(names) if self._sorted else names)}


def _full_name(node: Any, space: str) -> str:
    name = str(node["name"])
    if "." in name:
        return name
    own = node.get("namespace", space)
    return f"{own}.{name}" if own else name


def _reference(name: str, space: str) -> str:
    """A type's name, without the namespace if that is the enclosing one."""
    if name in _PRIMITIVE or not space:
        return name
    return name.removeprefix(f"{space}.") if name.rpartition(".")[0] == space else name
