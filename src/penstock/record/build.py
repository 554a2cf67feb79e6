"""Builds batches from records, for coordinators, compaction, clients and tests."""

from collections.abc import Iterable, Iterator

from penstock.record.batch import (
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
)
from penstock.record.compression import Codec, compress
from penstock.record.record import Record
from penstock.record.stamp import seal
from penstock.record.varint import ONE_BYTE, write_varint


def numbered(
    pairs: Iterable[tuple[bytes | None, bytes | None]], timestamp: int, base_offset: int = 0
) -> Iterator[Record]:
    """Keys and values as records with one timestamp and consecutive offsets."""
    for offset, (key, value) in enumerate(pairs, base_offset):
        yield Record(offset, timestamp, key, value, [])


def build_batch(
    records: Iterable[Record],
    *,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    base_offset: int = 0,
    last_offset: int | None = None,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """One batch of at least one record.

    `last_offset` preserves the offset range of a batch whose last records compaction removed.
    """
    batch = bytearray(HEADER_BYTES)
    count = 0
    base_timestamp = NO_TIMESTAMP if delete_horizon_ms is None else delete_horizon_ms
    max_timestamp = NO_TIMESTAMP
    newest_offset = base_offset
    for record in records:
        if count == 0 and delete_horizon_ms is None:
            base_timestamp = record.timestamp
        _write_record(batch, record, record.timestamp - base_timestamp, record.offset - base_offset)
        max_timestamp = max(max_timestamp, record.timestamp)
        newest_offset = record.offset
        count += 1
    if count == 0:
        raise ValueError("a batch needs at least one record; `emptied` makes an empty one")
    if log_append_time_ms is not None:
        max_timestamp = log_append_time_ms
    if codec is not Codec.NONE:
        batch[HEADER_BYTES:] = compress(codec, memoryview(batch)[HEADER_BYTES:], level)
    attributes = (
        codec
        | (log_append_time_ms is not None) * LOG_APPEND_TIME
        | transactional * TRANSACTIONAL
        | control * CONTROL
        | (delete_horizon_ms is not None) * DELETE_HORIZON
    )
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LENGTH_END,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        (newest_offset if last_offset is None else last_offset) - base_offset,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    seal(batch)
    return batch


def emptied(header: BatchHeader) -> bytearray:
    """The batch without its records, as compaction retains a producer's last batch.

    Offsets, producer and sequence stay, so duplicates are still detected after a restart.
    """
    batch = bytearray(HEADER_BYTES)
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        HEADER_BYTES - LENGTH_END,
        header.leader_epoch,
        MAGIC,
        0,
        header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL),
        header.last_offset_delta,
        NO_TIMESTAMP,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        0,
    )
    seal(batch)
    return batch


def _write_record(out: bytearray, record: Record, timestamp_delta: int, offset_delta: int) -> None:
    body = bytearray(1)
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    write_varint(body, len(record.headers))
    for key, value in record.headers:
        _write_bytes(body, key.encode("utf-8", "surrogateescape"))
        _write_bytes(body, value)
    write_varint(out, len(body))
    out += body


def _write_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(1)  # zigzag -1
    else:
        size = len(data)
        if size < ONE_BYTE:
            out.append(size << 1)
        else:
            write_varint(out, size)
        out += data
