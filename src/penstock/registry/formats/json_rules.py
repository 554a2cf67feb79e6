"""Decides whether one JSON Schema can read the data of another, by comparing keyword by keyword.

The rules and terms are Confluent's. A content model is *open* if an object may have any additional
property, *closed* if it may have none, and *partially open* if additional properties have a schema.
Adding a property to an open model breaks readers, because old data may have it with any type. What
a comparison cannot decide, such as a changed `not`, counts as incompatible.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from operator import gt, lt
from typing import Any, Final, TypeAlias

from penstock.registry.formats.parsed import BrokenSchema

Node: TypeAlias = Any
Resolve: TypeAlias = Callable[[str], Node]

_COUNTS: Final = ("minLength", "minItems", "minProperties")
"""Lower bounds of numbers that are never negative: 0 allows every value."""
_LOWER_BOUNDS: Final = (*_COUNTS, "minimum", "exclusiveMinimum")
_UPPER_BOUNDS: Final = ("maxLength", "maxItems", "maxProperties", "maximum", "exclusiveMaximum")
_UNCHANGED: Final = (
    "not",
    "if",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
)
"""If a reader has one of these keywords, the writer must have it with the same value."""
_SAY_NOTHING: Final = frozenset(
    {
        "$ref",
        "$schema",
        "$id",
        "$anchor",
        "$comment",
        "$defs",
        "definitions",
        "title",
        "description",
        "examples",
        "deprecated",
    }
)
"""Keywords beside a reference that do not constrain data."""
MAX_DEPTH: Final = 200
MAX_STEPS: Final = 20_000
"""Nested alternatives take exponential time; this limits a comparison to about a second."""


class References:
    """The references of one schema. Since draft 2019-09, keywords beside a reference apply too;
    earlier drafts ignore them.
    """

    def __init__(self, resolve: Resolve, *, have_siblings: bool) -> None:
        self._resolve, self._have_siblings = resolve, have_siblings
        self._joined: dict[int, tuple[Node, Node]] = {}
        """Joined nodes by the id of the original, which is kept alive: recursive schemas are
        detected by ids.
        """

    def resolved(self, node: Node) -> Node:
        for _ in range(MAX_DEPTH):
            if not (isinstance(node, dict) and isinstance(node.get("$ref"), str)):
                return node
            if self._have_siblings and not node.keys() <= _SAY_NOTHING:
                return self._with_siblings(node)
            node = self._resolve(node["$ref"])
        return {}

    def _with_siblings(self, node: Node) -> Node:
        if id(node) not in self._joined:
            self._joined[id(node)] = node, {}  # placeholder, in case the schema refers to itself
            target = self.resolved(self._resolve(node["$ref"]))
            own = {key: value for key, value in node.items() if key not in _SAY_NOTHING}
            self._joined[id(node)] = node, _both(target, own)
        return self._joined[id(node)][1]


def _both(one: Node, other: dict[str, Any]) -> Node:
    """A schema with the constraints of both."""
    if not isinstance(one, dict):
        return other if one else False
    shared = {key: other[key] for key in one.keys() & other.keys()}
    joined = {**other, **one}
    return {**joined, "allOf": [*one.get("allOf", ()), shared]} if shared else joined


class JsonRules:
    """One comparison of a reader's and a writer's schema."""

    def __init__(self, reader: References, writer: References) -> None:
        self._reader, self._writer = reader, writer
        self._open: set[tuple[int, int]] = set()
        """Pairs being compared; a recursive schema stops at a pair that is already open."""
        self._steps = 0

    def reasons(self, reader: Node, writer: Node, path: str = "#") -> Iterator[str]:
        reader, writer = self._reader.resolved(reader), self._writer.resolved(writer)
        if reader in (True, {}) or writer is False:
            return
        if reader is False:
            yield f"{path}: nothing is allowed any more"
            return
        if writer is True:
            writer = {}
        pair = (id(reader), id(writer))
        if pair in self._open:
            return
        self._steps += 1
        if len(self._open) > MAX_DEPTH or self._steps > MAX_STEPS:
            raise BrokenSchema("they are too deep, or have too many alternatives")
        self._open.add(pair)
        try:
            yield from self._combined(reader, writer, path)
            yield from _types(reader, writer, path)
            yield from _values(reader, writer, path)
            yield from _bounds(reader, writer, path)
            yield from self._objects(reader, writer, path)
            yield from self._arrays(reader, writer, path)
        finally:
            self._open.discard(pair)

    def _reads(self, reader: Node, writer: Node) -> bool:
        return not any(self.reasons(reader, writer))

    def _combined(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        """Each alternative of the writer must be readable by some alternative of the reader."""
        for every in reader.get("allOf", ()):
            if not any(self._reads(every, each) for each in _alternatives(writer, "allOf")):
                yield f"{path}/allOf: a condition was added"
        for name in ("anyOf", "oneOf"):
            if name not in reader:
                continue
            for number, each in enumerate(_alternatives(writer, "anyOf", "oneOf")):
                if not any(self._reads(one, each) for one in reader[name]):
                    yield f"{path}/{name}/{number}: no alternative reads it any more"
        rest = [name for name in ("anyOf", "oneOf") if name in writer and name not in reader]
        plain = {key: value for key, value in reader.items() if key != "allOf"}
        for name in rest:
            for number, each in enumerate(writer[name]):
                if not self._reads(plain, _merged(writer, name, each)):
                    yield f"{path}/{name}/{number}: it cannot be read any more"

    def _objects(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        if _has_alternatives(writer) and not _has_alternatives(reader):
            return  # compared in `_combined`, alternative by alternative
        yield from self._properties(reader, writer, path)
        required = set(writer.get("required", ()))
        for name in reader.get("required", ()):
            node = self._reader.resolved(reader.get("properties", {}).get(name, {}))
            has_default = isinstance(node, dict) and "default" in node
            if name not in required and not has_default:
                yield f"{path}/required/{name}: the property is required now, without a default"
        for name in ("dependencies", "dependentRequired", "dependentSchemas"):
            for key, value in reader.get(name, {}).items():
                if writer.get(name, {}).get(key) != value:
                    yield f"{path}/{name}/{key}: the dependency was added or changed"

    def _properties(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        mine, theirs = reader.get("properties", {}), writer.get("properties", {})
        further, was_further = _further(reader), _further(writer)
        for name in theirs.keys() & mine.keys():
            yield from self.reasons(mine[name], theirs[name], f"{path}/properties/{name}")
        for name in sorted(mine.keys() - theirs.keys()):
            at = f"{path}/properties/{name}"
            node = self._reader.resolved(mine[name])
            if was_further is True and node not in (True, {}):
                yield f"{at}: a property was added to an open content model"
            elif was_further is not False:
                yield from self.reasons(node, was_further, at)
        for name in sorted(theirs.keys() - mine.keys()):
            at = f"{path}/properties/{name}"
            if further is False:
                yield f"{at}: a property was removed from a closed content model"
            else:
                yield from self.reasons(further, theirs[name], at)
        if was_further is not False:
            if further is False:
                yield f"{path}/additionalProperties: further properties are not allowed any more"
            else:
                yield from self.reasons(further, was_further, f"{path}/additionalProperties")

    def _arrays(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        if _has_alternatives(writer) and not _has_alternatives(reader):
            return
        mine, theirs = _tuple(reader), _tuple(writer)
        rest, was_rest = _rest(reader), _rest(writer)
        for number in range(max(len(mine), len(theirs))):
            one = mine[number] if number < len(mine) else rest
            other = theirs[number] if number < len(theirs) else was_rest
            yield from self.reasons(one, other, f"{path}/items/{number}")
        yield from self.reasons(rest, was_rest, f"{path}/items")


def _types(reader: Node, writer: Node, path: str) -> Iterator[str]:
    allowed = _type_set(reader)
    if allowed is None or _has_alternatives(writer):
        return
    used = _type_set(writer)
    if used is None:
        used = {_type_of(each) for each in _enumerated(writer)} or None
    if used is None:
        yield f"{path}/type: any type was allowed"
        return
    for each in sorted(used - allowed):
        if not (each == "integer" and "number" in allowed):
            yield f"{path}/type: {each} is not allowed any more"


def _values(reader: Node, writer: Node, path: str) -> Iterator[str]:
    if "enum" in reader or "const" in reader:
        allowed, used = _enumerated(reader), _enumerated(writer)
        if not used and not _has_alternatives(writer):
            yield f"{path}/enum: any value was allowed"
        known = set(map(_comparable, allowed))
        for each in used:
            if _comparable(each) not in known:
                yield f"{path}/enum: {each!r} is not allowed any more"
    for name in _UNCHANGED:
        if name in reader and reader[name] != writer.get(name):
            yield f"{path}/{name}: it was added or changed"
    if "pattern" in reader and reader["pattern"] != writer.get("pattern"):
        yield f"{path}/pattern: it was added or changed"
    for key, value in reader.get("patternProperties", {}).items():
        if writer.get("patternProperties", {}).get(key) != value:
            yield f"{path}/patternProperties/{key}: it was added or changed"


def _bounds(reader: Node, writer: Node, path: str) -> Iterator[str]:
    if _has_alternatives(writer) and not _has_alternatives(reader):
        return
    for names, is_narrower in ((_LOWER_BOUNDS, gt), (_UPPER_BOUNDS, lt)):
        for name in names:
            new, old = reader.get(name), writer.get(name)
            if isinstance(new, bool) or new is None or (name in _COUNTS and new == 0):
                if new is True and old is not True:  # draft 4's exclusiveMinimum
                    yield f"{path}/{name}: it was added"
                continue
            if old is None or isinstance(old, bool) or is_narrower(new, old):
                yield f"{path}/{name}: it was added or made narrower"
    if reader.get("uniqueItems") and not writer.get("uniqueItems"):
        yield f"{path}/uniqueItems: it was added"
    new, old = reader.get("multipleOf"), writer.get("multipleOf")
    if new is not None and (old is None or old % new):
        yield f"{path}/multipleOf: it was added or changed"


def _has_alternatives(node: Node) -> bool:
    return "anyOf" in node or "oneOf" in node


def _alternatives(node: Node, *names: str) -> list[Node]:
    """The node's alternatives, each with the keywords beside them; the node itself if none."""
    return [_merged(node, name, each) for name in names if name in node for each in node[name]] or [
        node
    ]


def _merged(node: Node, name: str, alternative: Node) -> Node:
    if not isinstance(alternative, dict):
        return alternative
    return {**{key: value for key, value in node.items() if key != name}, **alternative}


def _further(node: Node) -> Node:
    """The schema of additional properties, or True or False."""
    found = node.get("additionalProperties", node.get("unevaluatedProperties", True))
    return True if found == {} else found


def _tuple(node: Node) -> list[Node]:
    found = node.get("prefixItems", node.get("items"))
    return found if isinstance(found, list) else []


def _rest(node: Node) -> Node:
    """The schema of the items after a tuple."""
    items = node.get("items", True)
    return node.get("additionalItems", True) if isinstance(items, list) else items


def _type_set(node: Node) -> set[str] | None:
    found = node.get("type")
    if found is None:
        return None
    return {found} if isinstance(found, str) else set(found)


def _enumerated(node: Mapping[str, Any]) -> list[Any]:
    if "const" in node:
        return [node["const"]]
    return list(node.get("enum", ()))


def _comparable(value: Any) -> Hashable:
    """A hashable form that is equal for equal JSON values: 1 equals 1.0, but not true."""
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, list):
        return "array", tuple(map(_comparable, value))
    if isinstance(value, dict):
        return "object", frozenset((name, _comparable(each)) for name, each in value.items())
    found: Hashable = value
    return found


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
