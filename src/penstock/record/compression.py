"""Compresses and decompresses a batch's records; decompression has a hard output limit.

cramjam's own `output_len` is a hint, not a limit, so output goes only into buffers allocated here.
A buffer starts at the size that the data declares, or at a guess, and grows up to the limit.
cramjam is imported at its first use: a broker that opens no compressed batch saves 2 MB.
"""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct

from penstock.errors import ErrorCode, KafkaError
from penstock.record import lz4, snappy
from penstock.record.fresh import fresh
from penstock.record.invalid import InvalidRecord
from penstock.types import Buffer


class Codec(IntEnum):
    """`compression.type`, numbered as in the low three attribute bits."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class UnknownCodec(KafkaError):
    """The attribute bits name no known codec."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class DecompressionLimit(KafkaError):
    """The records decompress past the limit. On this code a producer splits the batch."""

    code = ErrorCode.MESSAGE_TOO_LARGE

    def __init__(self, codec: Codec, limit_bytes: int) -> None:
        super().__init__(f"{codec.name.lower()} data decompresses to over {limit_bytes} bytes")


CODECS = {int(codec): codec for codec in Codec}
"""The codecs by number."""

_FIRST_GUESS = 8
_GROWTH = 4
_LEAST_BUFFER = 1024
_BUFFER_FULL = "failed to write whole buffer"
"""cramjam's message for a buffer that is too small; any other message means corrupt data."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UINT32_LE = Struct("<I")
_DEFLATE_MAX_RATIO = 1032


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """`data` in the framing of Kafka's clients; what `level` means depends on the codec."""
    import cramjam

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
    """`data` decompressed; raises `DecompressionLimit` past `limit_bytes`.

    The result may be a view of `scratch`, valid until its next use: the page faults of fresh memory
    for every batch cost more than most decompression.
    """
    import cramjam

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
    """None means "past the limit", here and in `snappy`."""
    import cramjam

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
    decompress_into: Callable[[Buffer, memoryview], int],
    data: Buffer,
    declared: int,
    limit_bytes: int,
    scratch: bytearray,
) -> memoryview | None:
    """One call if `declared` (0: unknown) or the guess is large enough; None past the limit."""
    import cramjam

    size = declared or max(len(data) * _FIRST_GUESS, _LEAST_BUFFER)
    while True:
        size = min(size, limit_bytes)
        out = memoryview(scratch if size <= len(scratch) <= limit_bytes else fresh(size))
        try:
            return out[: decompress_into(data, out)]
        except cramjam.DecompressionError as error:
            if str(error) != _BUFFER_FULL:
                raise
        if len(out) == limit_bytes:
            return None
        size = len(out) * _GROWTH


def _gzip_size(data: Buffer) -> int:
    """The last member's size from its trailer; 0 if above deflate's maximum ratio, 1032 : 1."""
    if len(data) < 18:
        return 0
    (size,) = _UINT32_LE.unpack_from(data, len(data) - 4)
    return int(size) if size <= len(data) * _DEFLATE_MAX_RATIO else 0


def _zstd_size(data: Buffer) -> int:
    """The first frame's content size (RFC 8878, 3.1.1.1); 0 if the frame does not declare it."""
    if len(data) < 18 or data[:4] != _ZSTD_MAGIC:
        return 0
    descriptor = data[4]
    single_segment = descriptor >> 5 & 1
    at = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3]
    width = (single_segment, 2, 4, 8)[descriptor >> 6]
    size = int.from_bytes(data[at : at + width], "little")
    return size + 256 if width == 2 else size
