"""Turns a produced batch into the one to store: validated, in the topic's compression."""

from typing import Final

from penstock.record.batch import BatchHeader, read_header
from penstock.record.compression import DecompressionLimit
from penstock.record.invalid import InvalidRecord
from penstock.record.recompress import recompressed
from penstock.record.rejected import rejection
from penstock.record.stamp import stamp_max_timestamp
from penstock.record.validate import (
    BatchRules,
    InvalidTimestamp,
    check_records,
    check_timestamps,
)
from penstock.types import TopicPartition

COMPRESSION_COST: Final = 4
"""Compressing takes at least this many times as long as decompressing."""


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
        header = with_true_timestamp(batch, header, timestamps.newest)
    return batch, header, walked_bytes


def with_true_timestamp(
    batch: memoryview | bytearray, header: BatchHeader, newest: int
) -> BatchHeader:
    """The header with the records' largest timestamp, which retention and lookup by time use."""
    if header.max_timestamp == newest and not header.is_log_append_time:
        return header
    stamp_max_timestamp(batch, newest)
    return read_header(batch)
