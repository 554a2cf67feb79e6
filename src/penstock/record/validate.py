"""What a broker checks of a produced batch: its header always, its records where it must.

The header's check and the CRC are all that the hot path pays. Kafka's broker walks every
record; here only topics that need it do, by `check_records`.
"""

import msgspec

from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    crc_matches,
    read_header,
)
from penstock.record.invalid import InvalidRecord
from penstock.record.record import declared_count, payload
from penstock.record.varint import read_varint, read_varlong
from penstock.types import Buffer


class BatchTooLarge(KafkaError):
    """A batch past `max.message.bytes`; a producer splits it and sends the parts."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class InvalidTimestamp(KafkaError):
    """A timestamp outside the topic's bounds, or of a type that only brokers may set."""

    code = ErrorCode.INVALID_TIMESTAMP


class BatchRules(msgspec.Struct, frozen=True, kw_only=True):
    """A topic's settings that bound a batch, named as in its config."""

    max_message_bytes: int
    log_append_time: bool = False
    timestamp_before_max_ms: int = (1 << 63) - 1
    timestamp_after_max_ms: int = 3_600_000


class NotOneBatch(InvalidRecord):
    """No batch at all, a cut one, an old one, or several: refused before a log is looked at."""


def check_produced(records: Buffer, rules: BatchRules, now_ms: int) -> BatchHeader:
    """The header of the one batch that a produce request (v3 and up) holds for a partition.

    A few stray bytes may lie behind it, as Kafka allows: only `size_bytes` are the batch.
    """
    header = _only_batch(records)
    if header.base_offset != 0:
        raise InvalidRecord(f"base offset {header.base_offset} of a produced batch is not 0")
    if header.size_bytes > rules.max_message_bytes:
        raise BatchTooLarge(
            f"batch of {header.size_bytes} bytes, at most {rules.max_message_bytes} are allowed"
        )
    if not crc_matches(records, header):
        raise CorruptBatch(f"CRC {header.crc:#010x} does not match the batch")
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise InvalidRecord(
            f"{header.record_count} records do not fit last offset delta {header.last_offset_delta}"
        )
    _ = header.codec  # refuses a number that no codec has
    _check_producer(header)
    _check_timestamps(header, rules, now_ms)
    return header


def _only_batch(records: Buffer) -> BatchHeader:
    if len(records) < HEADER_BYTES:
        raise NotOneBatch("a partition's data holds no whole record batch")
    if records[MAGIC_AT] < MAGIC:
        raise NotOneBatch(f"magic {records[MAGIC_AT]} is too old for produced batches")
    header = read_header(records)
    behind = len(records) - header.size_bytes
    if behind < 0:
        raise NotOneBatch(f"a batch of {header.size_bytes} bytes is cut by {-behind} bytes")
    if behind >= HEADER_BYTES:
        raise NotOneBatch(f"{behind} bytes lie behind the one batch of a partition")
    return header


def _check_producer(header: BatchHeader) -> None:
    if header.is_control:
        raise InvalidRecord("clients may not write control records")
    if header.producer_id >= 0:
        if header.base_sequence < 0 or header.producer_epoch < 0:
            raise InvalidRecord(
                f"producer {header.producer_id} needs epoch and sequence, "
                f"not {header.producer_epoch} and {header.base_sequence}"
            )
    elif header.is_transactional:
        raise InvalidRecord("a transactional batch needs a producer id")


def _check_timestamps(header: BatchHeader, rules: BatchRules, now_ms: int) -> None:
    """The newest record and the first stand for all: older ones between pass unseen."""
    if header.attributes & LOG_APPEND_TIME:
        raise InvalidTimestamp("only brokers may set the timestamp type LogAppendTime")
    if rules.log_append_time:
        return
    newest, first = header.max_timestamp, header.base_timestamp
    if newest != NO_TIMESTAMP and newest - now_ms > rules.timestamp_after_max_ms:
        raise InvalidTimestamp(
            f"timestamp {newest} is over {rules.timestamp_after_max_ms} ms after {now_ms}"
        )
    if first != NO_TIMESTAMP and now_ms - first > rules.timestamp_before_max_ms:
        raise InvalidTimestamp(
            f"timestamp {first} is over {rules.timestamp_before_max_ms} ms before {now_ms}"
        )


def check_records(
    batch: Buffer, header: BatchHeader, *, keys_required: bool, limit_bytes: int
) -> None:
    """Walk the records without making any: sizes, counts, offsets 0..n-1, keys where required.

    Deltas and key sizes of one byte are read in place: calls are what such a loop costs.
    """
    data = payload(batch, header, limit_bytes)
    at = 0
    try:
        for index in range(declared_count(header)):
            size, at = read_varint(data, at)
            end = at + size
            if size < 0 or end > len(data):
                raise InvalidRecord(f"record {index} of {size} bytes, {len(data) - at} are left")
            at += 1  # attributes, none of them in use
            if data[at] < 0x80:
                at += 1
            else:
                _, at = read_varlong(data, at)
            byte = data[at]
            if byte < 0x80:
                offset_delta, at = byte >> 1 ^ -(byte & 1), at + 1
            else:
                offset_delta, at = read_varint(data, at)
            if offset_delta != index:
                raise InvalidRecord(f"record {index} has offset delta {offset_delta}")
            byte = data[at]
            if byte < 0x80:
                key_size, at = byte >> 1 ^ -(byte & 1), at + 1
            else:
                key_size, at = read_varint(data, at)
            if key_size > 0:
                at += key_size
            elif key_size < 0 and keys_required:
                raise InvalidRecord(f"record {index} has no key, which a compacted topic needs")
            value_size, at = read_varint(data, at)
            if value_size > 0:
                at += value_size
            at = at + 1 if data[at] == 0 else _skip_headers(data, at, index)
            # Lengths that run past the record show here: `at` only ever moves forward.
            if at != end:
                raise InvalidRecord(f"record {index} of {size} bytes has {size + at - end}")
    except IndexError:
        raise InvalidRecord("the last record is cut") from None
    if at != len(data):
        raise InvalidRecord(f"{len(data) - at} bytes follow the last record")


def _skip_headers(data: bytes, at: int, index: int) -> int:
    count, at = read_varint(data, at)
    if count < 0:
        raise InvalidRecord(f"record {index} has header count {count}")
    for _ in range(count):
        key_size, at = read_varint(data, at)
        if key_size < 0:
            raise InvalidRecord(f"record {index} has a header whose key is null")
        value_size, at = read_varint(data, at + key_size)
        at += max(value_size, 0)
    return at
