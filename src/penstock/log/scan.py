"""Walks over the batches of a segment file by their headers, without reading the records."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from penstock.log.files import LogFile
from penstock.record.batch import (
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    crc_matches,
    read_header,
)

WINDOW_BYTES: Final = 4096
"""The size of one read while walking over small batches."""

SMALL_BATCH_BYTES: Final = 512
"""Above this size, one header per read is cheaper: most of a window would be records."""

CHUNK_BYTES: Final = 1 << 20
"""The size of one read while checking whole batches."""

# Base offset, length, magic, last offset delta: all that a search needs, and a fifth of the
# price of a whole header.
_SPAN: Final = Struct(">qi4xb6xi")


def spans(file: LogFile, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Position, base offset, last offset and size of each batch in `[position, end)`.

    `CorruptBatch` where the bytes are not a batch.
    """
    window = b""
    start = position
    size = WINDOW_BYTES
    while position < end:
        at = position - start
        if at + _SPAN.size > len(window):
            window = file.read(position, _window(size))
            start, at = position, 0
            if len(window) < HEADER_BYTES:
                raise CorruptBatch(
                    f"{file.path}: {len(window)} bytes at {position} are not a batch"
                )
        base_offset, length, magic, last_offset_delta = _SPAN.unpack_from(window, at)
        size = LENGTH_END + length
        if magic != MAGIC or size < HEADER_BYTES or size > end - position or last_offset_delta < 0:
            raise CorruptBatch(f"{file.path}: no batch begins at byte {position}")
        yield position, base_offset, base_offset + last_offset_delta, size
        position += size


def headers(file: LogFile, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch in `[position, end)`, its CRC unchecked."""
    window = b""
    start = position
    size = WINDOW_BYTES
    while position < end:
        at = position - start
        if at + HEADER_BYTES > len(window):
            window = file.read(position, _window(size))
            start, at = position, 0
        try:
            header = read_header(window, at)
        except CorruptBatch as error:
            raise CorruptBatch(
                f"{file.path}: no batch begins at byte {position}: {error}"
            ) from None
        size = header.size_bytes
        if size > end - position or header.last_offset_delta < 0:
            raise CorruptBatch(f"{file.path}: no batch begins at byte {position}")
        yield position, header
        position += size


def _window(last_batch_bytes: int) -> int:
    return WINDOW_BYTES if last_batch_bytes <= SMALL_BATCH_BYTES else HEADER_BYTES


def checked(file: LogFile, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from the start; `CorruptBatch` at the first bad one."""
    position = 0
    chunk = b""
    start = 0
    while position < end:
        at = position - start
        if at + HEADER_BYTES > len(chunk):
            chunk = file.read(position, CHUNK_BYTES)
            start, at = position, 0
        header = read_header(chunk, at)
        if header.size_bytes > end - position:
            raise CorruptBatch(f"{end - position} bytes of {header.size_bytes} are there")
        if at + header.size_bytes > len(chunk):
            chunk = file.read(position, max(CHUNK_BYTES, header.size_bytes))
            start, at = position, 0
        if not crc_matches(chunk, header, at):
            raise CorruptBatch(f"its CRC is not {header.crc:#010x}")
        yield position, header
        position += header.size_bytes
