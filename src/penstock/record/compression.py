"""The codecs of a batch's records, each with an output limit that holds.

cramjam's own `output_len` is a hint and no limit, so output goes only into buffers of ours.
A buffer starts at what the data says of itself, or at a guess, and grows up to the limit.
"""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct

import cramjam

from penstock.errors import ErrorCode, KafkaError
from penstock.record import lz4, snappy
from penstock.record.invalid import InvalidRecord
from penstock.types import Buffer


class Codec(IntEnum):
    """`compression.type`, as the low three attribute bits number it."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class UnknownCodec(KafkaError):
    """Attribute bits that name no codec."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class DecompressionLimit(KafkaError):
    """Records that would grow past the limit; a producer answers this code by splitting them."""

    code = ErrorCode.MESSAGE_TOO_LARGE

    def __init__(self, codec: Codec, limit_bytes: int) -> None:
        super().__init__(f"{codec.name.lower()} data decompresses to over {limit_bytes} bytes")


_CODECS = {int(codec): codec for codec in Codec}

_FIRST_GUESS = 8
_GROWTH = 4
_LEAST_BUFFER = 1024
_BUFFER_FULL = "failed to write whole buffer"
"""How cramjam words a too small buffer; every other text means that the data is bad."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UINT32_LE = Struct("<I")
_DEFLATE_MAX_RATIO = 1032


def codec_of(number: int) -> Codec:
    codec = _CODECS.get(number)
    if codec is None:
        raise UnknownCodec(f"no codec has the number {number}")
    return codec


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """`data` as a Kafka client writes it; `level` means what the codec makes of it."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(data, level=level))
        case Codec.SNAPPY:
            return snappy.compress(data)
        case Codec.LZ4:
            return lz4.compress(data, level)
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=level))


def decompress(
    codec: Codec, data: Buffer, limit_bytes: int, scratch: bytearray | None = None
) -> Buffer:
    """What `data` holds, at most `limit_bytes` of it: `DecompressionLimit` when there is more.

    With `scratch` the result may be a view of it, good until its next use: fresh memory for every
    batch costs more than most decompression, in page faults.
    """
    try:
        out = _decompressed(codec, data, limit_bytes, scratch or bytearray())
    except cramjam.DecompressionError as error:
        raise InvalidRecord(f"bad {codec.name.lower()} data: {error}") from None
    if out is None:
        raise DecompressionLimit(codec, limit_bytes)
    return out


def _decompressed(
    codec: Codec, data: Buffer, limit_bytes: int, scratch: bytearray
) -> Buffer | None:
    """None stands for "past the limit" in this file and in `snappy`."""
    match codec:
        case Codec.NONE:
            return data if len(data) <= limit_bytes else None
        case Codec.GZIP:
            into, declared = cramjam.gzip.decompress_into, _gzip_size(data)
            return _into_growing(into, data, declared, limit_bytes, scratch)
        case Codec.SNAPPY:
            return snappy.decompress(data, limit_bytes, scratch)
        case Codec.LZ4:
            return _into_growing(cramjam.lz4.decompress_into, data, 0, limit_bytes, scratch)
        case Codec.ZSTD:
            into, declared = cramjam.zstd.decompress_into, _zstd_size(data)
            return _into_growing(into, data, declared, limit_bytes, scratch)


def _into_growing(
    decompress_into: Callable[[Buffer, bytearray], int],
    data: Buffer,
    declared: int,
    limit_bytes: int,
    scratch: bytearray,
) -> memoryview | None:
    """One call where `declared` (0: unknown) or the guess is large enough; None past the limit."""
    size = declared or max(len(data) * _FIRST_GUESS, _LEAST_BUFFER)
    while True:
        size = min(size, limit_bytes)
        out = scratch if size <= len(scratch) <= limit_bytes else bytearray(size)
        try:
            return memoryview(out)[: decompress_into(data, out)]
        except cramjam.DecompressionError as error:
            if str(error) != _BUFFER_FULL:
                raise
        if len(out) == limit_bytes:
            return None
        size = len(out) * _GROWTH


def _gzip_size(data: Buffer) -> int:
    """The trailer's size of the last member; deflate cannot pass 1032 : 1, so neither may it."""
    if len(data) < 18:
        return 0
    (size,) = _UINT32_LE.unpack_from(data, len(data) - 4)
    return int(size) if size <= len(data) * _DEFLATE_MAX_RATIO else 0


def _zstd_size(data: Buffer) -> int:
    """The first frame's content size (RFC 8878, 3.1.1.1); 0 where the frame does not tell."""
    if len(data) < 18 or data[:4] != _ZSTD_MAGIC:
        return 0
    descriptor = data[4]
    single_segment = descriptor >> 5 & 1
    at = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3]
    width = (single_segment, 2, 4, 8)[descriptor >> 6]
    size = int.from_bytes(data[at : at + width], "little")
    return size + 256 if width == 2 else size
