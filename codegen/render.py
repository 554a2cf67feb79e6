"""Renders one module of message declarations per API."""

import re
from collections.abc import Iterator
from typing import Any

from penstock.wire.apis import snake

PRIMITIVES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "uuid": "Uuid",
    "records": "Records",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint16": "uint16",
}
ZERO = {
    "bool": "False",
    "float": "0.0",
    "str": '""',
    "bytes": 'b""',
    "Records": 'b""',
    "Uuid": "NO_UUID",
}
SCHEMA_NAMES = ("Message", "Records", "V", "int8", "int16", "int32", "int64", "uint16")


class Module:
    """The declarations of one API, or of one data message."""

    def __init__(self, title: str, low: int, high: int) -> None:
        self.title, self.low, self.high = title, low, high
        self.classes: dict[str, str] = {}

    def add(self, schema: dict[str, Any]) -> None:
        """Declare a message after the structs inside it."""
        shared = {struct["name"]: struct for struct in schema.get("commonStructs", [])}
        self._declare(schema["name"], schema, shared)

    def _declare(self, name: str, struct: dict[str, Any], shared: dict[str, Any]) -> str:
        lines = [line for field in struct["fields"] for line in self._field(field, shared)]
        body = "\n".join(lines) or "    pass"
        # Kafka may give two structs of one API the same name: the second gets a prefix.
        if self.classes.get(name, body) != body:
            name = f"Response{name}"
            assert self.classes.get(name, body) == body, name
        self.classes.setdefault(name, body)
        return name

    def _field(self, field: dict[str, Any], shared: dict[str, Any]) -> Iterator[str]:
        carried = field.get("versions") or field["taggedVersions"]
        low, high = bounds(carried)
        if max(low, self.low) > min(high, self.high):
            return
        kind = field["type"]
        array = kind.startswith("[]")
        hint = self._hint(kind.removeprefix("[]"), field, shared)
        default = self._default(field.get("default"), hint, array=array)
        if array:
            hint = f"list[{hint}]"
        nullable = self._clip(field.get("nullableVersions", "none"))
        if nullable:
            default = "None" if hint == "Records" else default
            hint += " | None"
        arguments = []
        if nullable and nullable != self._clip(carried):
            arguments.append(f'nullable="{nullable}"')
        if "tag" in field:
            arguments.append(f"tag={field['tag']}")
            assert self._clip(field["taggedVersions"]) == self._clip(carried), field
        if arguments or self._clip(carried) != "0+":
            hint = f"Annotated[{hint}, V({', '.join([repr(self._clip(carried)), *arguments])})]"
        yield f"    {snake(field['name'])}: {hint} = {default}".replace("'", '"')

    def _hint(self, kind: str, field: dict[str, Any], shared: dict[str, Any]) -> str:
        if kind in PRIMITIVES:
            return PRIMITIVES[kind]
        return self._declare(kind, field if field.get("fields") else shared[kind], shared)

    def _default(self, given: Any, hint: str, *, array: bool) -> str:
        if given == "null":
            return "None"
        if array:
            return "[]"
        if hint in ("bool", "str", "int8", "int16", "int32", "int64", "uint16"):
            if given is None:
                return ZERO.get(hint, "0")
            if hint == "bool":
                return str(given).capitalize()
            return repr(given) if hint == "str" else str(int(str(given), 0))
        return ZERO.get(hint) or f"{hint}()"

    def _clip(self, text: str) -> str:
        """The versions within those of the API, in the shortest form; "" for none."""
        low, high = bounds(text)
        if max(low, self.low) > min(high, self.high):
            return ""
        low = 0 if low <= self.low else low
        if high >= self.high:
            return f"{low}+"
        return f"{low}-{high}" if low != high else str(low)

    def text(self) -> str:
        body = "".join(
            f"\n\nclass {name}(Message):\n{fields}\n" for name, fields in self.classes.items()
        )
        names = [n for n in SCHEMA_NAMES if re.search(rf"\b{n}\b", body)]
        imports = []
        if "Annotated[" in body:
            imports.append("from typing import Annotated\n")
        ours = [n for n in ("NO_UUID", "Uuid") if re.search(rf"\b{n}\b", body)]
        from_types = f"from penstock.types import {', '.join(ours)}\n" if ours else ""
        imports.append(from_types + f"from penstock.wire.schema import {', '.join(names)}\n")
        return f'"""{self.title}; written by codegen."""\n\n' + "\n".join(imports) + body


def bounds(text: str) -> tuple[int, int]:
    if text == "none":
        return 1, 0
    if text.endswith("+"):
        return int(text[:-1]), 32767
    low, _, high = text.partition("-")
    return int(low), int(high or low)
