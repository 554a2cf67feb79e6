"""JSON Schema, drafts 4 to 2020-12: parsing, references and comparison."""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from penstock.registry.formats.json_rules import JsonRules, References
from penstock.registry.formats.parsed import BrokenSchema, Imported, ParsedSchema

_DEFAULT: Final = "http://json-schema.org/draft-07/schema#"
"""Confluent's default for a schema that names no draft."""
_DATED: Final = "json-schema.org/draft/20"
"""Part of the names of drafts 2019-09, 2020-12 and later."""

_DATA: Final = {"enum", "const", "default", "examples"}
"""Keywords whose values are data, even if they look like schemas."""
_NAMED: Final = {
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
}
"""Keywords that map freely chosen names to schemas: a property may be called `const`."""

ENUM: Final = 100
"""How many values of an enum the meta-schema check looks at."""


class ParsedJsonSchema:
    """A parsed schema, and the schemas that it refers to by name."""

    def __init__(self, text: str, imported: Imported) -> None:
        self._node = _read(text)
        self._imported = {name: _own_references_as(name, _read(each)) for name, each in imported}
        _check(self._node)

    @cached_property
    def canonical(self) -> str:
        return _written(self._node)

    def normalized(self) -> str:
        return json.dumps(self._node, separators=(",", ":"), ensure_ascii=False, sort_keys=True)

    def formatted(self, name: str) -> str | None:
        return self.canonical if name in {"", "default"} else None

    def cannot_read(self, writer: ParsedSchema) -> list[str]:
        assert isinstance(writer, ParsedJsonSchema)
        rules = JsonRules(self._references(), writer._references())  # noqa: SLF001  its own class
        return list(rules.reasons(self._node, writer._node))  # noqa: SLF001

    def _references(self) -> References:
        draft = self._node.get("$schema", "") if isinstance(self._node, dict) else ""
        return References(self._resolve, have_siblings=_DATED in draft)

    def _resolve(self, reference: str) -> Any:
        name, _, pointer = reference.partition("#")
        node = self._node
        if name and name != _id(self._node):
            if name not in self._imported:
                raise BrokenSchema(f"$ref {reference!r} is neither in the schema nor a reference")
            node = self._imported[name]
        if pointer and not pointer.startswith("/"):
            return _anchored(node, pointer, reference)
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            try:
                node = node[int(key)] if isinstance(node, list) else node[key]
            except (LookupError, TypeError, ValueError):
                raise BrokenSchema(f"$ref {reference!r} leads nowhere") from None
        return node

    def check_references(self) -> None:
        for reference in _references(self._node):
            self._resolve(reference)


def parse_json_schema(text: str, imported: Imported) -> ParsedSchema:
    try:
        found = ParsedJsonSchema(text, imported)
        found.check_references()
        _ = found.canonical
    except RecursionError:
        raise BrokenSchema("it is nested too deeply") from None
    return found


def _read(text: str) -> Any:
    try:
        node = json.loads(text, parse_constant=_not_json)
    except ValueError as error:
        raise BrokenSchema(f"not JSON: {error}") from None
    if not isinstance(node, dict | bool):
        raise BrokenSchema("a JSON Schema is an object, true or false")
    return node


def _own_references_as(name: str, document: Any) -> Any:
    """An imported document whose references into itself are rewritten to the name under which
    it is imported.
    """
    own = _id(document)

    def renamed(node: Any, *, are_names: bool = False) -> Any:
        if isinstance(node, list):
            return [renamed(each) for each in node]
        if not isinstance(node, dict):
            return node
        if are_names:
            return {key: renamed(value) for key, value in node.items()}
        found = {
            key: value if key in _DATA else renamed(value, are_names=key in _NAMED)
            for key, value in node.items()
        }
        target = found.get("$ref")
        if isinstance(target, str):
            file, mark, pointer = target.partition("#")
            found["$ref"] = f"{name}{mark}{pointer}" if file in {"", own} else target
        return found

    return renamed(document)


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _written(node: Any) -> str:
    try:
        return json.dumps(node, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise BrokenSchema("it has a number that JSON cannot have") from None


def _check(node: Any) -> None:
    """Check the schema against the meta-schema of its draft."""
    from jsonschema.exceptions import SchemaError  # late: rarely needed
    from jsonschema.validators import validator_for

    draft = node.get("$schema", _DEFAULT) if isinstance(node, dict) else _DEFAULT
    if not isinstance(draft, str):
        raise BrokenSchema("#/$schema: it must be a text")
    validator: Any = validator_for({"$schema": draft})
    try:
        validator.check_schema(_with_short_enums(node))
    except SchemaError as error:
        path = "/".join(["#", *map(str, error.path)])
        raise BrokenSchema(f"{path}: {error.message}") from None


def _with_short_enums(node: Any) -> Any:
    """The schema with shortened enums: the meta-schema's uniqueness check may compare all
    pairs of values.
    """
    if isinstance(node, list):
        return [_with_short_enums(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: value[:ENUM] if key == "enum" and isinstance(value, list) else _with_short_enums(value)
        for key, value in node.items()
    }


def _references(node: Any) -> list[str]:
    """The targets of all `$ref`."""
    found = (each.get("$ref") for each in _schemas(node))
    return [each for each in found if isinstance(each, str)]


def _anchored(node: Any, anchor: str, reference: str) -> Any:
    for each in _schemas(node):
        if each.get("$anchor") == anchor or _id(each) == f"#{anchor}":
            return each
    raise BrokenSchema(f"$ref {reference!r} leads nowhere")


def _schemas(node: Any) -> Iterator[dict[str, Any]]:
    """Every object that is or may be a schema, including values of unknown keywords."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            yield each
            for key, value in each.items():
                if key in _NAMED and isinstance(value, dict):
                    waiting += value.values()
                elif key not in _DATA:
                    waiting.append(value)


def _id(node: Any) -> str | None:
    """The schema's id. Draft 4 calls it `id`, and there `$id` may be anything."""
    found = node.get("$id", node.get("id")) if isinstance(node, dict) else None
    return found if isinstance(found, str) else None
