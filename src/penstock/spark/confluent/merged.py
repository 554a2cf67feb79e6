"""The columns of a subject: the fields of all its versions, as one Avro record. Pure."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from penstock.errors import ConfigError

_WIDER: Final = ("int", "long", "float", "double")
_WITH_DEFAULT: Final = {"boolean", "string", "enum", *_WIDER}
_NAMED: Final = {"record", "error", "enum", "fixed"}


def expanded(node: Any, named: Mapping[str, Any], name: str = "fields", space: str = "") -> Any:
    """A schema with each named type written out in place of its name, under unique names.

    `named` has the types of other schemas that it refers to, by their full names.
    """
    return _Expansion(dict(named)).expand(node, name, space, ())


class _Expansion:
    """One walk through a schema."""

    def __init__(self, named: dict[str, Any]) -> None:
        self._named = {name: (each, name.rpartition(".")[0]) for name, each in named.items()}

    def expand(self, node: Any, at: str, space: str, inside: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [
                self.expand(each, f"{at}.{number}", space, inside)
                for number, each in enumerate(node)
            ]
        if isinstance(node, str):
            return self._by_name(node, at, space, inside)
        kind = node["type"]
        if isinstance(kind, dict | list):
            return self.expand(kind, at, space, inside)
        if kind in _NAMED:
            full = _full_name(node, space)
            self._named[full] = (node, full.rpartition(".")[0])
            return self._definition(node, at, full, inside)
        made = {**node}
        for part in ("items", "values"):
            if part in node and kind in {"array", "map"}:
                made[part] = self.expand(node[part], f"{at}.{part}", space, inside)
        return made

    def _by_name(self, name: str, at: str, space: str, inside: tuple[str, ...]) -> Any:
        full = name if "." in name or not space else f"{space}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            return name  # a primitive type
        key = full if full in self._named else name
        if key in inside:
            raise ConfigError(f"schema: {key} contains itself, which a column cannot")
        return self._definition(found[0], at, key, inside)

    def _definition(self, node: Any, at: str, full: str, inside: tuple[str, ...]) -> Any:
        made = {key: value for key, value in node.items() if key not in {"namespace", "aliases"}}
        made["name"] = at
        if "fields" in node:
            space = full.rpartition(".")[0]
            made["fields"] = [
                {
                    **each,
                    "type": self.expand(
                        each["type"], f"{at}.{each['name']}", space, (*inside, full)
                    ),
                }
                for each in node["fields"]
            ]
        return made


def merged(newest_first: Sequence[Any]) -> Any:
    """One record with the fields of all versions; a type that was widened has its wider type."""
    return reduce(lambda new, old: _merged(new, old, ""), newest_first)


def defaults(node: Any) -> dict[str, Any]:
    """Defaults, except null, of fields that a version may lack.

    Fields of other types, such as alternatives, are left out: a default is written otherwise than
    it is read.
    """
    found = {}
    for each in node["fields"]:
        whole, value = _without_null(each["type"]), each.get("default")
        if value is None:
            continue
        kind = _kind(whole)
        if kind == "logical" and whole["logicalType"] != "decimal":
            kind = whole["type"]  # such as a date, which is read as its number
        if kind in {"bytes", "fixed"}:
            found[each["name"]] = value.encode("latin-1")  # one character per byte
        elif kind in _WITH_DEFAULT or (kind in {"array", "map"} and not value):
            found[each["name"]] = value
    return found


def filling(kind: Any) -> Callable[[Any], Any] | None:
    """Adds the defaults of fields that a value lacks, also inside it; None if there are none."""
    match _without_null(kind):
        case {"type": "record", "fields": fields} as node:
            missing = defaults(node)
            parts = {each["name"]: filling(each["type"]) for each in fields}
            inside = [(name, fill) for name, fill in parts.items() if fill is not None]
            if not missing and not inside:
                return None

            def whole(found: Any) -> Any:
                if not isinstance(found, dict):
                    return found
                filled = {**missing, **found}
                for name, fill in inside:
                    if name in filled:
                        filled[name] = fill(filled[name])
                return filled

            return whole
        case {"type": "array", "items": items} if (item := filling(items)) is not None:
            return lambda found: [*map(item, found)] if isinstance(found, list) else found
        case {"type": "map", "values": values} if (value := filling(values)) is not None:
            return lambda found: (
                {key: value(each) for key, each in found.items()}
                if isinstance(found, dict)
                else found
            )
        case _:
            return None


def _merged(new: Any, old: Any, path: str) -> Any:
    if new == old:
        return new
    some_new, some_old = _without_null(new), _without_null(old)
    if some_new is not new or some_old is not old:
        one = _merged(some_new, some_old, path)
        return ["null", *one] if isinstance(one, list) else ["null", one]
    kind = _kind(new)
    if kind in _WIDER and _kind(old) in _WIDER and isinstance(new, str) and isinstance(old, str):
        # A float does not hold every int.
        return "double" if "float" in {new, old} else max(new, old, key=_WIDER.index)
    if kind == _kind(old):
        match kind:
            case "record":
                return {**new, "fields": _fields(new["fields"], old["fields"], path)}
            case "array":
                return {**new, "items": _merged(new["items"], old["items"], f"{path}[]")}
            case "map":
                return {**new, "values": _merged(new["values"], old["values"], f"{path}{{}}")}
            case "enum":
                return {**new, "symbols": list(dict.fromkeys([*new["symbols"], *old["symbols"]]))}
            case _:
                pass
    raise ConfigError(
        f"schema: {path.lstrip('.')} has types that cannot form one column in the versions of the "
        "subject; give the wanted schema by the option valueSchema"
    )


def _fields(new: list[Any], old: list[Any], path: str) -> list[Any]:
    known = {each["name"]: each["type"] for each in old}
    both = []
    for each in new:
        name, kind = each["name"], each["type"]
        if name in known:
            kind = _merged(kind, known[name], f"{path}.{name}")
        both.append({**each, "type": kind})
    names = {each["name"] for each in new}
    return both + [each for each in old if each["name"] not in names]


def _without_null(node: Any) -> Any:
    if not isinstance(node, list) or "null" not in node:
        return node
    some = [each for each in node if each != "null"]
    return some[0] if len(some) == 1 else some


def _kind(node: Any) -> Any:
    if isinstance(node, dict):
        return "logical" if "logicalType" in node else node["type"]
    return node if isinstance(node, str) else "union"


def _full_name(node: Any, space: str) -> str:
    name = str(node["name"])
    own = node.get("namespace", space)
    return name if "." in name or not own else f"{own}.{name}"
