"""Records of a batch as spans of bytes, with only the fields that compaction needs."""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.record.invalid import InvalidRecord
from penstock.record.varint import read_varint, read_varlong


class RecordSpan(NamedTuple):
    """One record in `data[start:end]`; its value is neither read nor copied."""

    start: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    is_tombstone: bool


def spans(data: bytes, count: int) -> Iterator[RecordSpan]:
    """The `count` records in `data`, decompressed; `InvalidRecord` when they do not fit."""
    at = 0
    try:
        for _ in range(count):
            start = at
            size, at = read_varint(data, at)
            end = at + size
            timestamp_delta, at = read_varlong(data, at + 1)  # past the attributes
            offset_delta, at = read_varint(data, at)
            key_size, at = read_varint(data, at)
            key = None
            if key_size >= 0:
                key = data[at : at + key_size]
                at += key_size
            value_size, at = read_varint(data, at)
            if not at + value_size < end <= len(data):
                raise InvalidRecord(f"a record of {size} bytes does not end with its fields")
            yield RecordSpan(start, end, timestamp_delta, offset_delta, key, value_size < 0)
            at = end
    except IndexError:
        raise InvalidRecord("the last record is cut") from None
    if at != len(data):
        raise InvalidRecord(f"{len(data) - at} bytes follow the last record")
