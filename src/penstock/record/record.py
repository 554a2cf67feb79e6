"""Reads the records inside a batch."""

from collections.abc import Iterator

import msgspec

from penstock.record.batch import BatchHeader, declared_count, payload
from penstock.record.invalid import InvalidRecord
from penstock.record.varint import read_varint, read_varlong
from penstock.types import Buffer


class Record(msgspec.Struct):
    """One record; a null value is a tombstone on compacted topics.

    A header key that is not UTF-8 keeps its bytes as surrogates, so rewriting the record, as
    compaction does, does not change it.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def records(batch: Buffer, header: BatchHeader, limit_bytes: int) -> Iterator[Record]:
    """Each record of the batch; decompresses at most `limit_bytes`."""
    return records_of_payload(payload(batch, header, limit_bytes), header)


def records_of_payload(data: bytes, header: BatchHeader) -> Iterator[Record]:
    """Each record in the decompressed payload of the batch with this header."""
    at = 0
    try:
        for _ in range(declared_count(header)):
            record, at = _read_record(data, at, header)
            yield record
    except IndexError:
        raise InvalidRecord("the last record is truncated") from None
    if at != len(data):
        raise InvalidRecord(f"{len(data) - at} bytes follow the last record")


def _read_record(data: bytes, at: int, header: BatchHeader) -> tuple[Record, int]:
    size, at = read_varint(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise InvalidRecord(f"record of {size} bytes, but only {len(data) - at} are left")
    # One byte of unused attributes precedes the deltas.
    timestamp_delta, at = read_varlong(data, at + 1)
    offset_delta, at = read_varint(data, at)
    key, at = _read_bytes(data, at)
    value, at = _read_bytes(data, at)
    headers, at = _read_headers(data, at)
    # Catches lengths that run past the record: `at` only ever moves forward.
    if at != end:
        raise InvalidRecord(f"record of {size} bytes holds fields of {size + at - end}")
    if header.is_log_append_time:
        timestamp = header.max_timestamp
    else:
        timestamp = header.base_timestamp + timestamp_delta
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), at


def _read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    if size < 0:
        return None, at
    return data[at : at + size], at + size


def _read_headers(data: bytes, at: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, at = read_varint(data, at)
    if count == 0:
        return [], at
    if count < 0:
        raise InvalidRecord(f"header count {count} is negative")
    headers = []
    for _ in range(count):
        size, at = read_varint(data, at)
        if size < 0:
            raise InvalidRecord("a header key is null")
        key = data[at : at + size].decode("utf-8", "surrogateescape")
        value, at = _read_bytes(data, at + size)
        headers.append((key, value))
    return headers, at
