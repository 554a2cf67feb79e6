"""What the writers of decoders and encoders share: lines, names, and the sizes of wire types."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.wire import primitives
from penstock.wire.schema import Array, Kind, Message, fields

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


class Source:
    """Lines of a function under construction, the field each serves, and the names they use."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        self.version, self.flexible = version, flexible
        self.lines: list[str] = []
        self.where: list[str] = []
        self.names: dict[str, Any] = dict(vars(primitives))
        self.path: list[str] = []
        self.depth = 0
        self.serial = 0

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)
        self.where.append(".".join(self.path))

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

    def constant(self, hint: str, value: Any) -> str:
        """A name under which the function sees `value`."""
        name = hint
        while self.names.get(name, value) is not value:
            name = self.fresh(hint)
        self.names[name] = value
        return name

    def compiled(self, message: type[Message]) -> Any:
        self.names["WHERE"] = self.where
        source = "\n".join(self.lines)
        filename = f"<{type(self).__name__} {message.__name__} v{self.version}>"
        exec(compile(source, filename, "exec"), self.names)  # noqa: S102  the source is our own
        function = self.names["function"]
        function.source = source
        return function

    def length_format(self, kind: Kind) -> str:
        if self.flexible:
            return "B"
        return LENGTH[kind] if isinstance(kind, str) else "i"


def smallest(kind: Kind, version: int, *, flexible: bool) -> int:
    """The fewest bytes that a value can take: bounds a declared count."""
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
            size += 1 if absent else smallest(field.kind, version, flexible=flexible)
    return max(size, 1)
