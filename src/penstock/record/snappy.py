"""Snappy as Kafka uses it: blocks in the framing of snappy-java ("xerial"), or one raw block.

Writes the framing, as Java clients do. Reads both: librdkafka and others may send a raw block.
"""

from collections.abc import Iterator
from struct import Struct

from penstock.record.fresh import fresh
from penstock.record.invalid import InvalidRecord
from penstock.types import Buffer

MAGIC = b"\x82SNAPPY\x00"
_HEADER = MAGIC + Struct(">ii").pack(1, 1)
"""Version 1, compatible with readers of version 1."""
_BLOCK_BYTES = 32 * 1024
_LENGTH = Struct(">i")
_LEAST_CHARGE_BYTES = 512
"""The least that a block counts towards the limit: each takes time, however small."""


def compress(data: Buffer) -> bytes:
    import cramjam  # late, as in `compression`

    view = memoryview(data)
    parts: list[bytes] = [_HEADER]
    for start in range(0, len(view), _BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def decompress(data: Buffer, limit_bytes: int, scratch: bytearray) -> memoryview | None:
    """All blocks in one buffer; None, before allocating, if their declared sizes pass the limit."""
    import cramjam

    view = memoryview(data)
    blocks: list[memoryview] = []
    ends: list[int] = []
    size = charged = 0
    for block in _framed(view) if view[: len(MAGIC)] == MAGIC else (view,):
        block_size = cramjam.snappy.decompress_raw_len(block)
        size += block_size
        charged += max(block_size, _LEAST_CHARGE_BYTES)
        if charged > limit_bytes:
            return None
        blocks.append(block)
        ends.append(size)
    out = memoryview(scratch if size <= len(scratch) else fresh(size))[:size]
    start = 0
    for block, end in zip(blocks, ends, strict=True):
        cramjam.snappy.decompress_raw_into(block, out[start:end])
        start = end
    return out


def _framed(view: memoryview) -> Iterator[memoryview]:
    if len(view) < len(_HEADER):
        raise InvalidRecord(f"snappy header is truncated to {len(view)} bytes")
    at, size = len(_HEADER), len(view)
    while at < size:
        if size - at < _LENGTH.size:
            raise InvalidRecord("snappy block length is truncated")
        (length,) = _LENGTH.unpack_from(view, at)
        at += _LENGTH.size
        if not 0 < length <= size - at:
            raise InvalidRecord(f"snappy block of {length} bytes, but {size - at} are left")
        yield view[at : at + length]
        at += length
