"""Zigzag varints as in records: small numbers of either sign take one byte.

Readers return (value, next position) and raise IndexError past the end of `data`. Their callers
turn that into `InvalidRecord` once per batch, instead of a bounds check per byte.
"""

from typing import Final

from penstock.record.invalid import InvalidRecord
from penstock.types import Buffer

ONE_BYTE: Final = 64
"""Values in [0, 64) take one byte."""
_VARINT_BITS: Final = 32
_VARLONG_BITS: Final = 64


def read_varint(data: Buffer, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), at + 1
    second = data[at + 1]
    if second < 0x80:
        return (byte & 0x7F | second << 7) >> 1 ^ -(byte & 1), at + 2
    return _read_long(data, at, _VARINT_BITS)


def read_varlong(data: Buffer, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), at + 1
    return _read_long(data, at, _VARLONG_BITS)


def _read_long(data: Buffer, at: int, bits: int) -> tuple[int, int]:
    raw = shift = 0
    while True:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise InvalidRecord(f"a varint before byte {at} does not end")
    if raw >> bits:
        raise InvalidRecord(f"a varint before byte {at} passes {bits} bits")
    return raw >> 1 ^ -(raw & 1), at


def write_varint(out: bytearray, value: int) -> None:
    """Append `value`, which must fit its field: 32 bits for lengths and deltas, else 64."""
    raw = value << 1 if value >= 0 else ~(value << 1)
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
