"""Prints a Protobuf file descriptor as the text of a `.proto` file."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

_SCALARS: Final = {
    Field.TYPE_DOUBLE: "double",
    Field.TYPE_FLOAT: "float",
    Field.TYPE_INT64: "int64",
    Field.TYPE_UINT64: "uint64",
    Field.TYPE_INT32: "int32",
    Field.TYPE_FIXED64: "fixed64",
    Field.TYPE_FIXED32: "fixed32",
    Field.TYPE_BOOL: "bool",
    Field.TYPE_STRING: "string",
    Field.TYPE_BYTES: "bytes",
    Field.TYPE_UINT32: "uint32",
    Field.TYPE_SFIXED32: "sfixed32",
    Field.TYPE_SFIXED64: "sfixed64",
    Field.TYPE_SINT32: "sint32",
    Field.TYPE_SINT64: "sint64",
}
_LABELS: Final = {Field.LABEL_REQUIRED: "required ", Field.LABEL_REPEATED: "repeated "}
_TEXTUAL: Final = {Field.TYPE_STRING, Field.TYPE_BYTES}


class CannotPrint(Exception):
    """The descriptor has something that this printer does not support, such as a group."""


def protobuf_text(file: Any, *, absolute: bool = False) -> str:
    """The text in the style of Confluent's registry: two spaces, an empty line between
    declarations.

    `absolute` prints type names with a leading dot. Short names are nicer, but may resolve to
    another type.
    """
    printer = _Printer(file, absolute=absolute)
    blocks = [list(printer.head())]
    if file.dependency:
        blocks.append(list(_imports(file)))
    options = list(_file_options(file))
    if options:
        blocks.append(options)
    blocks += [list(printer.message(each)) for each in file.message_type]
    blocks += [list(_enum(each)) for each in file.enum_type]
    blocks += list(printer.extensions(file.extension))
    blocks += [list(printer.service(each)) for each in file.service]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


class _Printer:
    """Prints one file."""

    def __init__(self, file: Any, *, absolute: bool) -> None:
        self._file, self._absolute = file, absolute
        self._proto2 = file.syntax in {"", "proto2"}
        if file.syntax == "editions":
            raise CannotPrint("an edition")

    def head(self) -> Iterator[str]:
        yield f'syntax = "{self._file.syntax or "proto2"}";'
        if self._file.package:
            yield f"package {self._file.package};"

    def message(self, message: Any) -> Iterator[str]:
        yield f"message {message.name} {{"
        yield from _indented(self._body(message))
        yield "}"

    def _body(self, message: Any) -> Iterator[str]:
        for name, value in _options(message.options, skipped={"map_entry"}):
            yield f"option {name} = {value};"
        yield from _reserved(message)
        maps = {each.name: each for each in message.nested_type if each.options.map_entry}
        oneofs: set[int] = set()
        for field in message.field:
            if field.HasField("oneof_index") and not field.proto3_optional:
                if field.oneof_index not in oneofs:
                    oneofs.add(field.oneof_index)
                    yield from self._oneof(message, field.oneof_index)
                continue
            entry = maps.get(field.type_name.rpartition(".")[2])
            yield self._map(field, entry) if entry is not None else self._field(field)
        for each in message.nested_type:
            if not each.options.map_entry:
                yield ""
                yield from self.message(each)
        for each in message.enum_type:
            yield ""
            yield from _enum(each)
        for each in message.extension_range:
            if each.HasField("options"):
                raise CannotPrint("options of an extension range")
            yield f"extensions {_numbers(each.start, each.end - 1, (1 << 29) - 1)};"
        for block in self.extensions(message.extension):
            yield from block

    def _oneof(self, message: Any, index: int) -> Iterator[str]:
        oneof = message.oneof_decl[index]
        yield f"oneof {oneof.name} {{"
        for name, value in _options(oneof.options):
            yield f"  option {name} = {value};"
        for field in message.field:
            if field.HasField("oneof_index") and field.oneof_index == index:
                yield "  " + self._field(field, in_oneof=True)
        yield "}"

    def _field(self, field: Any, *, in_oneof: bool = False) -> str:
        label = _LABELS.get(field.label, "")
        if not label and not in_oneof and (self._proto2 or field.proto3_optional):
            label = "optional "
        kind = self._type(field)
        return f"{label}{kind} {field.name} = {field.number}{_field_options(field)};"

    def _map(self, field: Any, entry: Any) -> str:
        key, value = (self._type(each) for each in entry.field)
        return f"map<{key}, {value}> {field.name} = {field.number}{_field_options(field)};"

    def _type(self, field: Any) -> str:
        if field.type in _SCALARS:
            return _SCALARS[field.type]
        if field.type not in {Field.TYPE_MESSAGE, Field.TYPE_ENUM}:
            raise CannotPrint("a group")
        return self._name(field.type_name)

    def _name(self, name: str) -> str:
        if self._absolute:
            return name
        package = f".{self._file.package}." if self._file.package else "."
        return name.removeprefix(package).removeprefix(".")

    def extensions(self, extensions: Iterable[Any]) -> Iterator[list[str]]:
        for each in extensions:
            yield [f"extend {self._name(each.extendee)} {{", f"  {self._field(each)}", "}"]

    def service(self, service: Any) -> Iterator[str]:
        yield f"service {service.name} {{"
        for name, value in _options(service.options):
            yield f"  option {name} = {value};"
        for each in service.method:
            asked = f"{'stream ' if each.client_streaming else ''}{self._name(each.input_type)}"
            answer = f"{'stream ' if each.server_streaming else ''}{self._name(each.output_type)}"
            options = [f"option {name} = {value};" for name, value in _options(each.options)]
            end = f" {{ {' '.join(options)} }}" if options else ";"
            yield f"  rpc {each.name} ({asked}) returns ({answer}){end}"
        yield "}"


def _imports(file: Any) -> Iterator[str]:
    public, weak = set(file.public_dependency), set(file.weak_dependency)
    for number, name in enumerate(file.dependency):
        kind = "public " if number in public else "weak " if number in weak else ""
        yield f'import {kind}"{name}";'


def _file_options(file: Any) -> Iterator[str]:
    for name, value in _options(file.options):
        yield f"option {name} = {value};"


def _enum(enum: Any) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    for name, value in _options(enum.options):
        yield f"  option {name} = {value};"
    for each in enum.value:
        yield f"  {each.name} = {each.number}{_bracketed(_options(each.options))};"
    ranges = [_numbers(each.start, each.end, (1 << 31) - 1) for each in enum.reserved_range]
    if ranges:
        yield f"  reserved {', '.join(ranges)};"
    if enum.reserved_name:
        yield f"  reserved {', '.join(_quoted(each) for each in enum.reserved_name)};"
    yield "}"


def _reserved(message: Any) -> Iterator[str]:
    ranges = [_numbers(each.start, each.end - 1, (1 << 29) - 1) for each in message.reserved_range]
    if ranges:
        yield f"reserved {', '.join(ranges)};"
    if message.reserved_name:
        yield f"reserved {', '.join(_quoted(each) for each in message.reserved_name)};"


def _numbers(first: int, last: int, greatest: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= greatest else last}"


def _field_options(field: Any) -> str:
    found = []
    if field.HasField("default_value"):
        value = field.default_value
        found.append(("default", _quoted(value) if field.type in _TEXTUAL else value))
    if field.HasField("json_name") and field.json_name != _json_name(field.name):
        found.append(("json_name", _quoted(field.json_name)))
    return _bracketed([*found, *_options(field.options)])


def _bracketed(options: Iterable[tuple[str, str]]) -> str:
    text = ", ".join(f"{name} = {value}" for name, value in options)
    return f" [{text}]" if text else ""


def _options(options: Any, skipped: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """The options that Protobuf itself defines; custom options cannot be printed."""
    for field, value in options.ListFields():
        if field.is_extension or field.message_type is not None:
            raise CannotPrint("an option of one's own")
        if field.name in skipped:
            continue
        if field.enum_type is not None:
            if not isinstance(value, int):
                raise CannotPrint("an option with several values")
            yield field.name, field.enum_type.values_by_number[value].name
        elif isinstance(value, bool):
            yield field.name, str(value).lower()
        else:
            yield field.name, _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each[:1].upper() + each[1:] for each in rest)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line}" if line else line


def file_of(data: bytes) -> Any:
    file = descriptor_pb2.FileDescriptorProto()
    file.ParseFromString(data)
    return file
