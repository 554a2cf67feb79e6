"""Validates a produced batch and turns it into the one to store, in the topic's compression.

First its header, then its records, then their timestamps. Consumers read the stored batch as it is,
so nothing malformed may pass.
"""

from typing import Final

from penstock.record.batch import (
    HEADER_BYTES,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    crc_matches,
    declared_count,
    payload_view,
    read_header,
)
from penstock.record.compression import DecompressionLimit
from penstock.record.invalid import InvalidRecord
from penstock.record.recompress import recompressed
from penstock.record.rejected import rejection
from penstock.record.rules import BatchRules, BatchTooLarge, InvalidTimestamp
from penstock.record.stamp import stamp_max_timestamp
from penstock.record.walk import walk
from penstock.types import Buffer, TopicPartition

_TIMESTAMP_END: Final = 1 << 63
COMPRESSION_COST: Final = 4
"""Compressing takes at least this many times as long as decompressing."""


class NotOneBatch(InvalidRecord):
    """No batch, a truncated one, an old format or several: rejected before the log is looked up."""


def check_produced(records: Buffer, rules: BatchRules) -> BatchHeader:
    """The header of the only batch that a produce request (v3 and up) has for a partition.

    Kafka allows a few stray bytes after it, so only the first `size_bytes` bytes are the batch.
    """
    header = _only_batch(records)
    if header.base_offset != 0:
        raise InvalidRecord(f"base offset {header.base_offset} of a produced batch is not 0")
    if header.size_bytes > rules.max_message_bytes:
        raise BatchTooLarge(
            f"batch of {header.size_bytes} bytes exceeds max.message.bytes = "
            f"{rules.max_message_bytes}"
        )
    if not crc_matches(records, header):
        raise CorruptBatch(f"CRC {header.crc:#010x} does not match the batch")
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise InvalidRecord(
            f"{header.record_count} records do not fit last offset delta {header.last_offset_delta}"
        )
    _ = header.codec  # raises on an unknown codec
    _check_producer(header)
    if rules.log_append_time and header.is_log_append_time:
        raise InvalidTimestamp("only brokers may set the timestamp type LogAppendTime")
    return header


def _only_batch(records: Buffer) -> BatchHeader:
    if len(records) < HEADER_BYTES:
        raise NotOneBatch("a partition's data does not contain a whole record batch")
    if records[MAGIC_AT] < MAGIC:
        raise NotOneBatch(f"magic {records[MAGIC_AT]} is too old for produced batches")
    header = read_header(records)
    excess = len(records) - header.size_bytes
    if excess < 0:
        raise NotOneBatch(f"a batch of {header.size_bytes} bytes lacks its last {-excess} bytes")
    if excess >= HEADER_BYTES:
        raise NotOneBatch(f"{excess} bytes follow the only batch allowed per partition")
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


class Timestamps:
    """Oldest and newest timestamp, taken from a batch's records and not from its header."""

    def __init__(
        self,
        oldest: int,
        newest: int,
        walked_bytes: int,
    ) -> None:
        self.oldest = oldest
        self.newest = newest
        self.walked_bytes = walked_bytes
        """Size of the decompressed records."""


def check_records(
    batch: Buffer,
    header: BatchHeader,
    *,
    keys_required: bool,
    limit_bytes: int,
    scratch: bytearray | None = None,
) -> Timestamps:
    """Check sizes, counts, offsets and keys of the records; decompresses at most `limit_bytes`."""
    data = payload_view(batch, header, limit_bytes, scratch)
    least_delta, greatest_delta = walk(data, declared_count(header), keys_required)
    oldest = header.base_timestamp + least_delta
    newest = header.base_timestamp + greatest_delta
    if oldest < -_TIMESTAMP_END or newest >= _TIMESTAMP_END:
        # Also where LogAppendTime hides them: the topic's type may be CreateTime.
        raise InvalidTimestamp(f"timestamps from {oldest} to {newest} exceed 64 bits")
    if header.is_log_append_time:
        return Timestamps(header.max_timestamp, header.max_timestamp, len(data))
    return Timestamps(oldest, max(newest, NO_TIMESTAMP), len(data))


def check_timestamps(timestamps: Timestamps, rules: BatchRules, now_ms: int) -> None:
    """Check the oldest and the newest timestamp; records without a timestamp always pass."""
    if rules.log_append_time:
        return
    oldest, newest = timestamps.oldest, timestamps.newest
    if newest != NO_TIMESTAMP and newest - now_ms > rules.timestamp_after_max_ms:
        raise InvalidTimestamp(
            f"timestamp {newest} is over {rules.timestamp_after_max_ms} ms after {now_ms}"
        )
    if oldest != NO_TIMESTAMP and now_ms - oldest > rules.timestamp_before_max_ms:
        raise InvalidTimestamp(
            f"timestamp {oldest} is over {rules.timestamp_before_max_ms} ms before {now_ms}"
        )


def stored(
    batch: memoryview | bytearray,
    header: BatchHeader,
    rules: BatchRules,
    topic_partition: TopicPartition,
    *,
    now_ms: int,
    limit_bytes: int,
    scratch: bytearray | None = None,
    names_records: bool = True,
) -> tuple[memoryview | bytearray, BatchHeader, int]:
    """The batch to append, its header, and the size of its decompressed records.

    A refusal names the records at fault if `names_records` is set.

    Raises `DecompressionLimit` if that size exceeds `limit_bytes`, or a fraction of it if the batch
    is recompressed. All other errors are independent of the limit.
    """
    try:
        timestamps = check_records(
            batch,
            header,
            keys_required=rules.keys_required,
            limit_bytes=limit_bytes,
            scratch=scratch,
        )
        check_timestamps(timestamps, rules, now_ms)
    except (InvalidRecord, InvalidTimestamp) as error:
        if not names_records:
            raise
        named = rejection(
            batch, header, rules, topic_partition, now_ms=now_ms, limit_bytes=limit_bytes
        )
        raise named or error from None
    walked_bytes = timestamps.walked_bytes
    if rules.codec is not None and rules.codec is not header.codec:
        limit_bytes //= COMPRESSION_COST
        if walked_bytes > limit_bytes:
            raise DecompressionLimit(header.codec, limit_bytes)
        made = recompressed(
            batch,
            header,
            rules.codec,
            max_message_bytes=rules.max_message_bytes,
            limit_bytes=limit_bytes,
            newest_ms=timestamps.newest,
            level=rules.codec_level,
            scratch=scratch,
        )
        return made, read_header(made), walked_bytes
    if not rules.log_append_time:
        newest = timestamps.newest
        if header.max_timestamp != newest or header.is_log_append_time:
            # Retention and lookup by time use the largest timestamp.
            stamp_max_timestamp(batch, newest)
            header = read_header(batch)
    return batch, header, walked_bytes
