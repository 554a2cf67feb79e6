"""The types that declare messages, and how a declaration is read back.

A message is one class with one line per field: its name, wire type, the versions that carry it,
and its default. `penstock.wire.messages` holds the classes; `decoder` and `encoder` turn them into
one pair of functions per message and version.
"""

from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    Protocol,
    TypeAlias,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from penstock.types import Buffer, Uuid

int8: TypeAlias = Annotated[int, "int8"]
int16: TypeAlias = Annotated[int, "int16"]
int32: TypeAlias = Annotated[int, "int32"]
int64: TypeAlias = Annotated[int, "int64"]
uint16: TypeAlias = Annotated[int, "uint16"]


class RecordsRegion(Protocol):
    """Record batches that are not in memory, such as in a segment file; `len()` is their size.

    An encoder never reads one. It returns the position at which to send it: see `Splice`.
    """

    def __len__(self) -> int: ...


Splice: TypeAlias = tuple[int, RecordsRegion]
"""A position in the encoded bytes, and the region to send before it."""

Records: TypeAlias = Annotated[Buffer | RecordsRegion, "records"]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class _MessageMeta(msgspec.StructMeta):
    """Tells type checkers that messages are frozen and keyword-only, as msgspec inherits it."""


class Message(
    msgspec.Struct, metaclass=_MessageMeta, kw_only=True, frozen=True, repr_omit_defaults=True
):
    """A request, a response, or a struct inside one: an immutable value.

    So default structs can be shared and compared, and responses can be cached. Every field has a
    default, so a decoder passes only the fields that its version carries.
    """


class V(msgspec.Struct, frozen=True):
    """The versions that carry a field: "3+", "2-7" or "4"; `nullable` if fewer of them allow null.

    A field with a tag is written to the tagged section, and only if it differs from its default.
    """

    text: str
    nullable: str = ""
    tag: int | None = None


class Field(NamedTuple):
    """One field of a message at one version."""

    name: str
    kind: "Kind"
    nullable: bool
    tag: int | None
    default: Any


class Array(NamedTuple):
    """An array of `item`."""

    item: "Kind"


Kind: TypeAlias = str | Array | type[Message]
"""A primitive's name ("int32", "string", …), an array, or a struct."""

_PRIMITIVES: dict[Any, str] = {
    bool: "bool",
    float: "float64",
    str: "string",
    bytes: "bytes",
    Uuid: "uuid",
}


def in_versions(text: str, version: int) -> bool:
    low, dash, high = text.partition("-")
    if low.endswith("+"):
        return version >= int(low[:-1])
    return int(low) <= version <= int(high if dash else low)


def fields(message: type[Message], version: int) -> list[Field]:
    """The fields that `version` carries, in wire order."""
    found = []
    hints = get_type_hints(message, include_extras=True)
    for declared in msgspec.structs.fields(message):
        hint = hints[declared.name]
        carried = _metadata(hint, V) or V("0+")
        if not in_versions(carried.text, version):
            continue
        kind, nullable = _kind(hint)
        if carried.nullable:
            nullable = in_versions(carried.nullable, version)
        default = (
            [] if isinstance(kind, Array) and declared.default is not None else declared.default
        )
        found.append(Field(declared.name, kind, nullable, carried.tag, default))
    return found


def missing_error_codes(message: type[Message], version: int) -> list[str]:
    """Fields for error codes that other versions of the message have and `version` does not."""
    carried = {field.name for field in fields(message, version)}
    return [
        name
        for name in message.__struct_fields__
        if name.endswith("error_code") and name not in carried
    ]


def _kind(hint: Any) -> tuple[Kind, bool]:
    """The wire type of a type hint, and whether it may be null."""
    if get_origin(hint) is Annotated:
        inner = get_args(hint)[0]
        primitive = _metadata(hint, str)
        if primitive:
            return primitive, NoneType in get_args(inner)
        return _kind(inner)
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (arg for arg in get_args(hint) if arg is not NoneType)
        return _kind(inner)[0], True
    if get_origin(hint) is list:
        return Array(_kind(get_args(hint)[0])[0]), False
    if hint in _PRIMITIVES:
        return _PRIMITIVES[hint], False
    assert issubclass(hint, Message), hint
    return hint, False


def _metadata(hint: Any, wanted: type) -> Any:
    return next((m for m in getattr(hint, "__metadata__", ()) if isinstance(m, wanted)), None)
