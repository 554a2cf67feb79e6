"""Record batch v2: the 61-byte header, the CRC, and the bytes of the records, decompressed.

Base offset and leader epoch precede the range that the CRC covers, so assigning them keeps the CRC
valid. Timestamps lie inside that range: see `stamp.py`.
The records themselves stay opaque here: see `record.py`.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from penstock.errors import ErrorCode, KafkaError
from penstock.record.compression import CODECS, Codec, UnknownCodec, decompress
from penstock.record.crc import crc32c
from penstock.record.invalid import InvalidRecord
from penstock.types import Buffer, LeaderEpoch, Offset, ProducerEpoch, ProducerId

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size

LENGTH_END: Final = 12
"""`batch_length` counts the bytes after itself."""
MAGIC_AT: Final = 16
CHECKED_FROM: Final = 21
"""The CRC covers the attributes and everything after them."""
MAGIC: Final = 2
SEQUENCES: Final = 1 << 31
NO_TIMESTAMP: Final = -1

CODEC_BITS: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

_BASE_OFFSET: Final = Struct(">q")
_LEADER_EPOCH: Final = Struct(">i")
_LEADER_EPOCH_AT: Final = 12


class CorruptBatch(KafkaError):
    """Bytes that are not a record batch, or a batch that changed since it was written."""

    code = ErrorCode.CORRUPT_MESSAGE


class BatchHeader:
    """The thirteen fields that precede the records, in wire order."""

    def __init__(
        self,
        base_offset: Offset,
        batch_length: int,
        leader_epoch: LeaderEpoch,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        base_sequence: int,
        record_count: int,
    ) -> None:
        self.base_offset = base_offset
        self.batch_length = batch_length
        self.leader_epoch = leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.record_count = record_count

    def fields(self) -> tuple[int, ...]:
        """All thirteen, in wire order."""
        return (
            self.base_offset,
            self.batch_length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BatchHeader) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash(self.fields())

    def __repr__(self) -> str:
        return f"BatchHeader{self.fields()}"

    @property
    def size_bytes(self) -> int:
        return LENGTH_END + self.batch_length

    @property
    def last_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta + 1)

    @property
    def last_sequence(self) -> int:
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) % SEQUENCES

    @property
    def codec(self) -> Codec:
        codec = CODECS.get(self.attributes & CODEC_BITS)
        if codec is None:
            raise UnknownCodec(f"unknown compression codec {self.attributes & CODEC_BITS}")
        return codec

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop this batch's tombstones and markers (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def read_header(buf: Buffer, at: int = 0) -> BatchHeader:
    """The header at `at`; the records after it need not be in `buf`."""
    if len(buf) - at < HEADER_BYTES:
        raise CorruptBatch(f"{len(buf) - at} bytes are too few for a batch header")
    header = BatchHeader(*HEADER.unpack_from(buf, at))
    if header.magic != MAGIC:
        raise CorruptBatch(f"magic {header.magic} at byte {at} is not {MAGIC}")
    if header.batch_length < HEADER_BYTES - LENGTH_END:
        raise CorruptBatch(f"batch length {header.batch_length} at byte {at} is impossible")
    return header


def crc_matches(buf: Buffer, header: BatchHeader, at: int = 0) -> bool:
    end = at + header.size_bytes
    if end > len(buf):
        return False
    return bool(crc32c(memoryview(buf)[at + CHECKED_FROM : end]) == header.crc)


def batches(buf: Buffer, at: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch, without checking CRCs.

    A truncated last batch is not an error: a fetch response may end anywhere.
    """
    size = len(buf)
    while size - at >= HEADER_BYTES:
        header = read_header(buf, at)
        end = at + header.size_bytes
        if end > size:
            return
        yield at, header
        at = end


def assign(buf: bytearray | memoryview, base_offset: int, leader_epoch: int, at: int = 0) -> None:
    """Set the batch's base offset and leader epoch; the CRC stays valid."""
    _BASE_OFFSET.pack_into(buf, at, base_offset)
    _LEADER_EPOCH.pack_into(buf, at + _LEADER_EPOCH_AT, leader_epoch)


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
