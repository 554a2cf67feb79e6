"""Generates the function that decodes one message at one version, as straight-line code.

One `Struct` call reads consecutive fields of fixed size and the length that follows them. A
declared count is checked against the remaining bytes before anything is allocated for it. The field
of each generated line is recorded, so that errors name it at no cost while decoding succeeds.
"""

from typing import Any

from penstock.wire import primitives
from penstock.wire.schema import Array, Field, Kind, Message, fields
from penstock.wire.source import FIXED, SIZES, FunctionSource, min_size_bytes

LONGEST_STRING = (1 << 15) - 1
"""In bytes. A compact length could be longer, but Kafka accepts no longer string in any version:
names end up in fields of older formats, where a longer one does not fit.
"""


class DecoderSource(FunctionSource):
    """Collects fields of fixed size in `run` until one of variable size needs the position."""

    def __init__(self, version: int, *, flexible: bool, most_items: int | None = None) -> None:
        super().__init__(version, flexible=flexible)
        self.run: list[tuple[str, str]] = []
        self._most_items = most_items
        """The most items in all arrays together; None: as many as there are bytes for."""

    def function(self, message: type[Message]) -> Any:
        self.write(message)
        return self.compiled(message)

    def write(
        self, message: type[Message], name: str = "function", fields_of: str = "LINE_FIELDS"
    ) -> None:
        """Write the lines of the function; `fields_of` is the expression for their fields."""
        with self.block(f"def {name}(buf: Buffer, pos: int = 0) -> tuple[Any, int]:"):
            self.emit("end = len(buf)")
            if self._most_items is not None:
                self.emit(f"left = {self._most_items}")
            with self.block("try:"):
                made = self.struct(message)
                self.flush()
                self.emit(f"return {made}, pos")
            with self.block("except MALFORMED as error:"):
                context = f"'{message.__name__} v{self.version}', {fields_of}, pos, end"
                self.emit(f"raise malformed(error, {context}) from None")

    def struct(self, message: type[Message]) -> str:
        """Read a struct's fields; returns the expression that makes it, valid after a flush."""
        values = {}
        tagged = []
        for field in fields(message, self.version):
            if field.tag is None:
                with self.field(field.name):
                    values[field.name] = self.value(field.name, field.kind, nullable=field.nullable)
            else:
                tagged.append(field)
        if self.flexible:
            values |= self.tags(tagged)
        arguments = ", ".join(f"{name}={value}" for name, value in values.items())
        return f"{self.constant(message.__name__, message)}({arguments})"

    def value(self, name: str, kind: Kind, *, nullable: bool, tagged: bool = False) -> str:
        if isinstance(kind, str) and kind in FIXED:
            return self.slot(name, FIXED[kind])
        if isinstance(kind, (str, Array)):
            return self.sized(name, kind, nullable=nullable)
        if not nullable:
            return self.struct(kind)
        present, made = self.slot(name, "b"), self.fresh(name)
        self.flush()
        self.emit(f"{made}: Any = None")
        # Kafka marks null by a varint of 0 in a tagged field, by a byte of -1 elsewhere.
        with self.block(f"if {present} > {0 if tagged else -1}:"):
            expression = self.struct(kind)
            self.flush()
            self.emit(f"{made} = {expression}")
        return made

    def slot(self, name: str, fmt: str) -> str:
        variable = self.fresh(name)
        self.run.append((variable, fmt))
        return variable

    def flush(self) -> None:
        """Read the collected fields with one call."""
        if not self.run:
            return
        variables, formats = zip(*self.run, strict=True)
        self.run.clear()
        if formats == ("B",):
            self.emit(f"{variables[0]} = buf[pos]")
            self.emit("pos += 1")
            return
        fmt = "".join(formats)
        name = f"unpack_{fmt}".replace("?", "o")
        unpack = self.constant(name, primitives.unpacker(fmt), f"unpacker({fmt!r})")
        self.emit(f"{', '.join(variables)}, = {unpack}(buf, pos)")
        self.emit(f"pos += {sum(SIZES[f] for f in formats)}")

    def length(self, name: str, kind: Kind) -> str:
        """Read a length or count; compact ones are written as one more."""
        size = self.slot(name, self.length_format(kind))
        self.emit(f"{size}: int")
        self.flush()
        if self.flexible:
            with self.block(f"if {size} > 127:"):
                self.emit(f"{size}, pos = uvarint_rest(buf, pos, {size})")
                if kind == "string":
                    with self.block(f"if {size} > {LONGEST_STRING + 1}:"):
                        self.emit(f'raise MalformedError(f"impossible length {{{size} - 1}}")')
            self.emit(f"{size} -= 1")
        return size

    def sized(self, name: str, kind: str | Array, *, nullable: bool) -> str:
        size, made = self.length(name, kind), self.fresh(name)
        self.emit(f"{made}: Any")
        if nullable:
            with self.block(f"if {size} == -1:"):
                self.emit(f"{made} = None")
            with self.block("else:"):
                self.contents(name, kind, size, made)
        else:
            self.contents(name, kind, size, made)
        return made

    def contents(self, name: str, kind: str | Array, size: str, made: str) -> None:
        if isinstance(kind, Array):
            self.array(name, kind.item, size, made)
            return
        at = self.fresh("at")
        self.emit(f"{at} = pos")
        self.emit(f"pos += {size}")
        with self.block(f"if {size} < 0 or pos > end:"):
            self.emit(f"pos = {at}")
            self.emit(f'raise MalformedError(f"impossible length {{{size}}}")')
        text = {"string": 'str({}, "utf-8")', "bytes": "bytes({})", "records": "{}"}[kind]
        self.emit(f"{made} = {text.format(f'buf[{at}:pos]')}")

    def array(self, name: str, item: Kind, count: str, made: str) -> None:
        least = min_size_bytes(item, self.version, flexible=self.flexible)
        with self.block(f"if {count} < 0 or {count} * {least} > end - pos:"):
            self.emit(f'raise MalformedError(f"impossible count {{{count}}}")')
        if self._most_items is not None:
            self.emit(f"left -= {count}")
            with self.block("if left < 0:"):
                self.emit(f'raise MalformedError("more than {self._most_items:,} items")')
        if isinstance(item, str) and item in FIXED:
            self.emit(f"{made} = list(repeated({FIXED[item]!r}, {count}).unpack_from(buf, pos))")
            self.emit(f"pos += {count} * {least}")
            return
        self.emit(f"{made} = []")
        append = self.fresh("append")
        self.emit(f"{append} = {made}.append")
        self.path[-1:] = [f"{name}[]"]
        with self.block(f"for _ in range({count}):"):
            value = self.value(name, item, nullable=False)
            self.flush()
            self.emit(f"{append}({value})")

    def tags(self, known: list[Field]) -> dict[str, str]:
        """Read a tagged section: absent fields keep their defaults, unknown ones are skipped."""
        count = self.slot("tags", "B")
        self.flush()
        values = {field.name: self.fresh(field.name) for field in known}
        for field in known:
            self.emit(f"{values[field.name]}: Any = {self.default(field)}")
        with self.field("tagged fields"), self.block(f"if {count}:"):
            if known:
                self.known_tags(known, values, count)
            else:
                self.emit(f"pos = skip_tags(buf, pos, {count})")
        return values

    def known_tags(self, known: list[Field], values: dict[str, str], count: str) -> None:
        tag, size, stop = self.fresh("tag"), self.fresh("size"), self.fresh("stop")
        with self.block(f"if {count} > 127:"):
            self.emit(f"{count}, pos = uvarint_rest(buf, pos, {count})")
        self.emit(f"check_tags({count}, end - pos)")
        with self.block(f"for _ in range({count}):"):
            self.emit(f"{tag}, pos = uvarint(buf, pos)")
            self.emit(f"{size}, pos = uvarint(buf, pos)")
            self.emit(f"{stop} = pos + {size}")
            with self.block(f"if {stop} > end:"):
                self.emit(f'raise MalformedError(f"impossible size {{{size}}}")')
            test = "if"
            for field in known:
                with self.field(field.name), self.block(f"{test} {tag} == {field.tag}:"):
                    nullable = field.nullable
                    value = self.value(field.name, field.kind, nullable=nullable, tagged=True)
                    self.flush()
                    self.emit(f"{values[field.name]} = {value}")
                test = "elif"
            with self.block("else:"):
                self.emit(f"pos = {stop}")
            with self.block(f"if pos != {stop}:"):
                self.emit('raise MalformedError("contents do not match the declared size")')


def line_fields(message: type[Message], version: int, before: int) -> list[str]:
    """The field of each line of a decoder that was written to a file, after `before` lines."""
    source = DecoderSource(version, flexible=True)
    source.write(message)
    return [""] * before + source.line_fields
