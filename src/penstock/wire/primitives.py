"""Functions that generated code calls: varints, tagged fields, packed arrays; and its errors."""

from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct
from struct import error as StructError  # noqa: N812  an exception of the standard library
from typing import Any, Final

from penstock.errors import ProtocolError
from penstock.types import Buffer

MAX_TAGS: Final = 1000
"""More tagged fields than any message has; keeps a peer from making us read millions."""


class MalformedError(Exception):
    """Raised by generated code; `malformed` turns it into a ProtocolError."""


MALFORMED: Final = (MalformedError, StructError, IndexError, UnicodeDecodeError)


def malformed(
    error: Exception, message: str, line_fields: Sequence[str], at: int, end: int
) -> ProtocolError:
    """The error with message, field and byte; the failed line of generated code gives the field."""
    assert error.__traceback__
    field = line_fields[error.__traceback__.tb_lineno - 1] or "end"
    return ProtocolError(f"{message}, {field}: {reason(error)} at byte {at} of {end}")


def reason(error: Exception) -> str:
    match error:
        case StructError() | IndexError():
            return "too few bytes"
        case UnicodeDecodeError():
            return f"not UTF-8 ({error.reason})"
        case _:
            return str(error)


def uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """An unsigned varint and the position after it."""
    first = buf[pos]
    return (first, pos + 1) if first < 128 else uvarint_rest(buf, pos + 1, first)


def uvarint_rest(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    """An unsigned 32-bit varint whose first byte, already read, has its continuation bit set."""
    value, shift = first & 127, 7
    while shift < 35:
        byte = buf[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, pos
        shift += 7
    raise MalformedError("a varint longer than 5 bytes")


def uvarint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def skip_tags(buf: Buffer, pos: int, count: int) -> int:
    """The position after a section of unknown tagged fields; `count` is its first byte."""
    if count > 127:
        count, pos = uvarint_rest(buf, pos, count)
    check_tags(count, len(buf) - pos)
    for _ in range(count):
        _, pos = uvarint(buf, pos)
        size, pos = uvarint(buf, pos)
        pos += size
        if pos > len(buf):
            raise MalformedError(f"impossible size {size}")
    return pos


def check_tags(count: int, remaining: int) -> None:
    """Raise if `count` tagged fields, of two bytes or more each, cannot fit."""
    if count * 2 > remaining or count > MAX_TAGS:
        raise MalformedError(f"impossible count {count}")


@cache
def unpacker(fmt: str) -> Callable[[Buffer, int], tuple[Any, ...]]:
    return Struct(">" + fmt).unpack_from


@cache
def packer(fmt: str) -> Callable[..., bytes]:
    return Struct(">" + fmt).pack


_FEW: Final = {fmt: [Struct(">" + fmt * n) for n in range(17)] for fmt in "?bhHiqd"}


def repeated(fmt: str, count: int) -> Struct:
    """The Struct of `count` values of one format; those of short arrays are precompiled."""
    if count < 17 and fmt in _FEW:
        return _FEW[fmt][count]
    return Struct(">" + fmt * count if fmt == "16s" else f">{count}{fmt}")
