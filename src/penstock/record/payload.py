"""A batch's records as bytes, decompressed."""

from penstock.record.batch import CODEC_BITS, HEADER_BYTES, BatchHeader
from penstock.record.compression import Codec, decompress
from penstock.record.invalid import InvalidRecord
from penstock.types import Buffer


def payload(batch: Buffer, header: BatchHeader, limit_bytes: int) -> bytes:
    """The records' bytes, decompressed and copied: Python reads `bytes` fastest."""
    return bytes(payload_view(batch, header, limit_bytes))


def payload_view(
    batch: Buffer, header: BatchHeader, limit_bytes: int, scratch: bytearray | None = None
) -> Buffer:
    """The records' bytes: decompressed, or a view of the batch if it is uncompressed."""
    if len(batch) < header.size_bytes:
        raise InvalidRecord(f"{header.size_bytes - len(batch)} bytes of the batch are missing")
    body = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    if header.record_count == 0 and not body:
        return b""  # compaction leaves empty batches, whatever their codec
    if header.attributes & CODEC_BITS == Codec.NONE:
        return body
    return decompress(header.codec, body, limit_bytes, scratch)


def declared_count(header: BatchHeader) -> int:
    if header.record_count < 0:
        raise InvalidRecord(f"record count {header.record_count} is negative")
    return header.record_count
