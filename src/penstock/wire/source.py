"""Builds the source of a generated function; shared by `decoder` and `encoder`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.types import Buffer
from penstock.wire import primitives
from penstock.wire.schema import Array, Field, Kind, Message, fields

FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "float64": "d",
    "uuid": "16s",
}
SIZES = {"?": 1, "B": 1, "b": 1, "h": 2, "H": 2, "i": 4, "q": 8, "d": 8, "16s": 16}
LENGTH = {"string": "h", "bytes": "i", "records": "i"}


class FunctionSource:
    """A function under construction: its lines, the field each line reads or writes, its globals.

    The field of each line lets an error name its field at no cost while decoding succeeds: see
    `primitives.malformed`.
    """

    def __init__(self, version: int, *, flexible: bool) -> None:
        self.version, self.flexible = version, flexible
        self.lines: list[str] = []
        self.line_fields: list[str] = []
        self.names: dict[str, Any] = dict(vars(primitives))
        self.expressions: dict[str, str] = {}
        """The source of constants that are not classes, for a file that holds the function."""
        self.path: list[str] = []
        self.depth = 0
        self.serial = 0

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)
        self.line_fields.append(".".join(self.path))

    @contextmanager
    def block(self, line: str) -> Iterator[None]:
        self.emit(line)
        self.depth += 1
        yield
        self.depth -= 1

    @contextmanager
    def field(self, name: str) -> Iterator[None]:
        self.path.append(name)
        yield
        self.path.pop()

    def fresh(self, hint: str) -> str:
        self.serial += 1
        return f"{hint}_{self.serial}"

    def constant(self, hint: str, value: Any, expression: str = "") -> str:
        """The name of a global of the function that holds `value`."""
        name = hint
        while self.names.get(name, value) is not value:
            name = self.fresh(hint)
        self.names[name] = value
        if expression:
            self.expressions[name] = expression
        return name

    def default(self, field: Field) -> str:
        """The expression for the field's default: a new list, or a shared global."""
        value = field.default
        if isinstance(value, list):
            return "[]"
        made = repr(value)
        if isinstance(value, Message):
            made = f"{self.constant(type(value).__name__, type(value))}()"
        return self.constant(f"DEFAULT_{field.name}", value, made)

    def compiled(self, message: type[Message]) -> Any:
        self.names |= {"LINE_FIELDS": self.line_fields, "Any": Any, "Buffer": Buffer}
        source = "\n".join(self.lines)
        filename = f"<{type(self).__name__} {message.__name__} v{self.version}>"
        exec(compile(source, filename, "exec"), self.names)  # noqa: S102  the source is generated here
        function = self.names["function"]
        function.source = source
        return function

    def length_format(self, kind: Kind) -> str:
        if self.flexible:
            return "B"
        return LENGTH[kind] if isinstance(kind, str) else "i"


def min_size_bytes(kind: Kind, version: int, *, flexible: bool) -> int:
    """The fewest bytes that a value can take; bounds the count that an array may declare."""
    if isinstance(kind, str) and kind in FIXED:
        return SIZES[FIXED[kind]]
    if isinstance(kind, Array):
        return 1 if flexible else 4
    if isinstance(kind, str):
        return 1 if flexible else SIZES[LENGTH[kind]]
    size = int(flexible)
    for field in fields(kind, version):
        absent = field.nullable and isinstance(field.kind, type)
        if field.tag is None:
            size += 1 if absent else min_size_bytes(field.kind, version, flexible=flexible)
    return max(size, 1)
