"""Generates the function that encodes one message at one version, as straight-line code.

The function appends to a bytearray. It does not copy records that are in a file, but returns them
with their positions. A struct in an array may be given as the bytes that `codec.encode_struct`
made of it, so that frequent responses are encoded once.

The function omits fields that the version does not have, but never an error code: it raises, and
the dispatcher closes the connection. Without its top-level error, OffsetFetch v8 would read as
"no offsets, and no error".
"""

from typing import Any

from penstock.wire import primitives
from penstock.wire.schema import Array, Field, Kind, Message, fields, missing_error_codes
from penstock.wire.source import FIXED, SIZES, FunctionSource

EXPLANATIONS = ("error_message", "status_detail")
MOST_EXPLAINED = 8191
"""Characters of an error's explanation, which may quote a long name of the request or many names:
no string has more than 32,767 bytes.
"""


class UnencodableError(Exception):
    """A bug in the caller: an error code in a field that the version does not have."""


class EncoderSource(FunctionSource):
    """Collects expressions of fixed size in `run` until one of variable size follows."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        super().__init__(version, flexible=flexible)
        self.names["UnencodableError"] = UnencodableError
        self.run: list[tuple[str, str]] = []
        self.out = "out"

    def function(self, message: type[Message]) -> Any:
        self.write(message)
        return self.compiled(message)

    def write(self, message: type[Message], name: str = "function") -> None:
        """Write the lines of the function."""
        with self.block(f"def {name}(message: Any, out: bytearray) -> Sequence[Any]:"):
            self.emit("splices: Sequence[Any] = ()")
            self.struct(message, "message")
            self.flush()
            self.emit("return splices")

    def struct(self, message: type[Message], value: str) -> None:
        for name in missing_error_codes(message, self.version):
            about = f"{message.__name__}.{name} is not in version {self.version}"
            with self.block(f"if {value}.{name}:"):
                self.emit(f"raise UnencodableError({about!r} + f': error {{{value}.{name}}}')")
        tagged = []
        for field in fields(message, self.version):
            if field.tag is None:
                self.value(field.kind, f"{value}.{field.name}", nullable=field.nullable)
            else:
                tagged.append(field)
        if self.flexible:
            self.tags(tagged, value)

    def value(self, kind: Kind, value: str, *, nullable: bool, tagged: bool = False) -> None:
        if isinstance(kind, str) and kind in FIXED:
            self.run.append((value, FIXED[kind]))
        elif isinstance(kind, (str, Array)):
            self.sized(kind, value, nullable=nullable)
        elif nullable:
            self.flush()
            made = self.fresh("struct")
            self.emit(f"{made} = {value}")
            with self.block(f"if {made} is None:"):
                # Kafka marks null by a varint of 0 in a tagged field, by a byte of -1 elsewhere.
                self.emit(f"{self.out}.append({0 if tagged else 255})")
            with self.block("else:"):
                self.emit(f"{self.out}.append(1)")
                self.struct(kind, made)
                self.flush()
        else:
            made = self.fresh("struct")
            self.emit(f"{made} = {value}")
            self.struct(kind, made)

    def flush(self) -> None:
        if not self.run:
            return
        if self.run == [("", "x")]:
            self.emit(f"{self.out}.append(0)")
        else:
            self.emit(f"{self.out} += {self.packed()}")
        self.run.clear()

    def packed(self, *more: tuple[str, str]) -> str:
        """The expression that packs the collected values, followed by `more`."""
        values, formats = zip(*self.run, *more, strict=True)
        fmt = "".join(formats)
        name = f"pack_{fmt}".replace("?", "o")
        pack = self.constant(name, primitives.packer(fmt), f"packer({fmt!r})")
        return f"{pack}({', '.join(v for v in values if v)})"

    def sized(self, kind: str | Array, value: str, *, nullable: bool) -> None:
        held, data, size = self.fresh("value"), self.fresh("data"), self.fresh("size")
        self.emit(f"{held} = {value}")
        self.emit(f"{data}: Any")
        contents = held
        if kind == "string":
            cut = f"[:{MOST_EXPLAINED}]" if value.endswith(EXPLANATIONS) else ""
            contents = f"{held}{cut}.encode()"
        plus = " + 1" if self.flexible else ""
        if nullable:
            with self.block(f"if {held} is None:"):
                self.emit(f"{data}, {size} = b'', {'0' if self.flexible else '-1'}")
            with self.block("else:"):
                self.emit(f"{data} = {contents}")
                self.emit(f"{size} = len({data}){plus}")
        else:
            self.emit(f"{data} = {contents}")
            self.emit(f"{size} = len({data}){plus}")
        self.length(kind, size)
        if isinstance(kind, Array):
            self.array(kind.item, data)
        elif kind == "records":
            with self.block(f"if isinstance({data}, (bytes, bytearray, memoryview)):"):
                self.emit(f"{self.out} += {data}")
            with self.block("else:"):
                self.emit(f"splices = (*splices, (len({self.out}), {data}))")
        else:
            self.emit(f"{self.out} += {data}")

    def length(self, kind: Kind, size: str) -> None:
        """Write the collected values, then the length; a short compact length takes one byte."""
        if not self.flexible:
            self.run.append((size, self.length_format(kind)))
            self.flush()
            return
        with self.block(f"if {size} < 128:"):
            if self.run:
                self.emit(f"{self.out} += {self.packed((size, 'B'))}")
            else:
                self.emit(f"{self.out}.append({size})")
        with self.block("else:"):
            if self.run:
                self.emit(f"{self.out} += {self.packed()}")
            self.emit(f"{self.out} += uvarint_bytes({size})")
        self.run.clear()

    def array(self, item: Kind, items: str) -> None:
        if isinstance(item, str) and item in FIXED:
            self.emit(f"{self.out} += repeated({FIXED[item]!r}, len({items})).pack(*{items})")
            return
        element = self.fresh("item")
        with self.block(f"for {element} in {items}:"):
            if isinstance(item, type):
                with self.block(f"if {element}.__class__ is bytes:"):
                    self.emit(f"{self.out} += {element}")
                    self.emit("continue")
            self.value(item, element, nullable=False)
            self.flush()

    def tags(self, known: list[Field], value: str) -> None:
        if not known:
            self.run.append(("", "x"))
            return
        self.flush()
        known.sort(key=lambda field: field.tag or 0)
        differs = {field.name: f"{value}.{field.name} != {self.default(field)}" for field in known}
        count = self.fresh("count")
        self.emit(f"{count} = {' + '.join(f'({test})' for test in differs.values())}")
        self.emit(f"{self.out}.append({count})")
        with self.block(f"if {count}:"):
            for field in known:
                with self.block(f"if {differs[field.name]}:"):
                    self.tag(field, f"{value}.{field.name}")

    def tag(self, field: Field, value: str) -> None:
        """Write number, size and contents of a tagged field."""
        number = primitives.uvarint_bytes(field.tag or 0)
        if isinstance(field.kind, str) and field.kind in FIXED:
            size = primitives.uvarint_bytes(SIZES[FIXED[field.kind]])
            self.emit(f"{self.out} += {number + size!r}")
            self.value(field.kind, value, nullable=field.nullable)
            self.flush()
            return
        outer, self.out = self.out, self.fresh("tagged")
        self.emit(f"{self.out} = bytearray()")
        self.value(field.kind, value, nullable=field.nullable, tagged=True)
        self.flush()
        self.emit(f"{outer} += {number!r} + uvarint_bytes(len({self.out})) + {self.out}")
        self.out = outer
