"""Decides whether one Protobuf file can read the data of another. The rules are Confluent's.

Fields are identified by their numbers, so names may change, and fields may be added and removed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

_SAME_BYTES: Final = (
    {
        Field.TYPE_INT32,
        Field.TYPE_UINT32,
        Field.TYPE_INT64,
        Field.TYPE_UINT64,
        Field.TYPE_BOOL,
        Field.TYPE_ENUM,
    },
    {Field.TYPE_SINT32, Field.TYPE_SINT64},
    {Field.TYPE_STRING, Field.TYPE_BYTES},
    {Field.TYPE_FIXED32, Field.TYPE_SFIXED32},
    {Field.TYPE_FIXED64, Field.TYPE_SFIXED64},
)
"""Types in the same set have the same wire encoding."""
_LENGTH_FIRST: Final = {Field.TYPE_STRING, Field.TYPE_BYTES, Field.TYPE_MESSAGE}
_MESSAGES: Final = {Field.TYPE_MESSAGE, Field.TYPE_GROUP}


class _Type(NamedTuple):
    """A message that is the type of a field."""

    name: str
    """Without its file's package, which may change."""
    message: Any
    is_own: bool
    """Whether it is in the schema's own file, all of whose messages are compared anyway."""


def cannot_read(reader: Sequence[Any], writer: Sequence[Any]) -> Iterator[str]:
    """The reasons why `reader` cannot read data of `writer`; each has its own file first,
    then its imports.
    """
    rules = _Rules(dict(_types(reader)), dict(_types(writer)))
    yield from rules.messages(reader[0].message_type, writer[0].message_type, "#")


def _types(files: Sequence[Any]) -> Iterator[tuple[str, _Type]]:
    """All messages by their full name, as fields refer to them."""

    def walk(messages: Any, outer: str, package: str, *, is_own: bool) -> Iterator[Any]:
        for each in messages:
            name = f"{outer}.{each.name}"
            yield name, _Type(name.removeprefix(package), each, is_own)
            yield from walk(each.nested_type, name, package, is_own=is_own)

    for file in files:
        package = f".{file.package}" if file.package else ""
        yield from walk(file.message_type, package, package, is_own=file is files[0])


class _Rules:
    """One comparison."""

    def __init__(self, reader: Mapping[str, _Type], writer: Mapping[str, _Type]) -> None:
        self._reader, self._writer = reader, writer
        self._seen: set[tuple[str, str]] = set()
        """Pairs of imported messages already compared; a message may contain itself."""

    def messages(self, mine: Any, theirs: Any, path: str) -> Iterator[str]:
        known = {each.name: each for each in mine}
        for each in theirs:
            at = f"{path}/{each.name}"
            if each.options.map_entry:
                continue  # compared with the field that uses it, whose name may change
            if each.name not in known:
                yield f"{{errorType:'MESSAGE_REMOVED', at '{at}'}}"
                continue
            yield from self._message(known[each.name], each, at)

    def _message(self, mine: Any, theirs: Any, path: str) -> Iterator[str]:
        known = {each.number: each for each in mine.field}
        had = {each.number: each for each in theirs.field}
        for number in known.keys() & had.keys():
            kind = self._changed(known[number], had[number])
            if kind:
                yield f"{{errorType:'{kind}', at '{path}/{number}'}}"
        for number in sorted(known.keys() ^ had.keys()):
            each = known.get(number) or had[number]
            if each.label == Field.LABEL_REQUIRED:
                what = "ADDED" if number in known else "REMOVED"
                yield f"{{errorType:'REQUIRED_FIELD_{what}', at '{path}/{number}'}}"
        yield from _oneofs(mine, theirs, path)
        yield from self.messages(mine.nested_type, theirs.nested_type, path)

    def _changed(self, mine: Any, theirs: Any) -> str | None:
        """The error type if a field number was redeclared incompatibly."""
        if mine.type != theirs.type:
            if not any({mine.type, theirs.type} <= each for each in _SAME_BYTES):
                scalar = not {mine.type, theirs.type} & _MESSAGES
                return "FIELD_SCALAR_KIND_CHANGED" if scalar else "FIELD_KIND_CHANGED"
        elif mine.type in _MESSAGES and not self._is_same_type(mine.type_name, theirs.type_name):
            return "FIELD_NAMED_TYPE_CHANGED"
        repeated = {each.label == Field.LABEL_REPEATED for each in (mine, theirs)}
        if len(repeated) > 1 and mine.type not in _LENGTH_FIRST:
            return "FIELD_NUMERIC_LABEL_CHANGED"  # repeated numbers are packed
        return None

    def _is_same_type(self, mine_name: str, theirs_name: str) -> bool:
        mine, theirs = self._reader[mine_name], self._writer[theirs_name]
        is_map = mine.message.options.map_entry
        if is_map != theirs.message.options.map_entry:
            return False
        if not is_map:
            if mine.name != theirs.name:
                return False
            pair = mine_name, theirs_name
            if (mine.is_own and theirs.is_own) or pair in self._seen:
                return True
            self._seen.add(pair)
        return not any(self._message(mine.message, theirs.message, ""))


def _oneofs(mine: Any, theirs: Any, path: str) -> Iterator[str]:
    """Fields that could be set together must not become exclusive."""
    before, now = _grouped(theirs), _grouped(mine)
    alone = {each.number for each in theirs.field} - {n for each in before.values() for n in each}
    for name, numbers in now.items():
        moved = numbers & alone
        if len(moved) > 1:
            yield f"{{errorType:'MULTIPLE_FIELDS_MOVED_TO_ONEOF', at '{path}/{name}'}}"
        elif moved and name in before:
            yield f"{{errorType:'FIELD_MOVED_TO_EXISTING_ONEOF', at '{path}/{name}'}}"
    there = {each.number for each in mine.field}
    for name, numbers in before.items():
        if name in now and numbers - there:
            yield f"{{errorType:'ONEOF_FIELD_REMOVED', at '{path}/{name}'}}"


def _grouped(message: Any) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for each in message.field:
        if each.HasField("oneof_index") and not each.proto3_optional:
            found.setdefault(message.oneof_decl[each.oneof_index].name, set()).add(each.number)
    return found
