"""Finds the invalid records of a rejected batch, with Kafka's messages for them (KIP-467).

`walk` only says that something is wrong with a batch. This module reads the batch again, by the
rules and with the texts of Kafka's own broker, so that a producer can drop the invalid records
and send the rest.
"""

from itertools import islice
from typing import NamedTuple

from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import NO_TIMESTAMP, BatchHeader, payload_view
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record, records_of_payload
from penstock.record.rules import BatchRules
from penstock.types import Buffer, TopicPartition

EXAMINED = 10_000
"""At most this many records are read: each costs microseconds in which no client is served."""
EXAMINED_BYTES = 1 << 22
"""At most this much of the decompressed records is copied and read."""
SHOWN = 3


class RecordError(NamedTuple):
    """One invalid record, by its index in the batch."""

    batch_index: int
    message: str

    def __str__(self) -> str:
        return f"RecordError(batchIndex={self.batch_index}, message='{self.message}')"


class RejectedRecords(KafkaError):
    """A batch rejected because of some of its records."""

    def __init__(self, code: ErrorCode, text: str, errors: list[RecordError]) -> None:
        super().__init__(text)
        self.code = code  # type: ignore[misc]  # see KafkaError
        self.errors = errors


def rejection(
    batch: Buffer,
    header: BatchHeader,
    rules: BatchRules,
    topic_partition: TopicPartition,
    *,
    now_ms: int,
    limit_bytes: int,
) -> RejectedRecords | None:
    """The error that names the invalid records; None if no single record is to blame."""
    errors: list[RecordError] = []
    code = ErrorCode.INVALID_RECORD
    try:
        data = payload_view(batch, header, limit_bytes)
    except KafkaError:
        return None
    found = records_of_payload(bytes(data[:EXAMINED_BYTES]), header)
    try:
        for index, record in enumerate(islice(found, EXAMINED)):
            if rules.keys_required and record.key is None:
                errors.append(RecordError(index, missing_key(topic_partition)))
            elif is_out_of_range(record, rules, now_ms):
                errors.append(RecordError(index, out_of_range(record, rules, now_ms)))
                code = ErrorCode.INVALID_TIMESTAMP
    except InvalidRecord:
        if len(data) <= EXAMINED_BYTES:
            return None  # malformed: the records cannot be read
    if not errors:
        return None
    if code is ErrorCode.INVALID_TIMESTAMP:
        text = "One or more records have been rejected due to invalid timestamp"
    else:
        shown = ", ".join(str(each) for each in errors[:SHOWN])
        text = (
            f"One or more records have been rejected due to {len(errors)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]"
        )
    return RejectedRecords(code, text, errors)


def missing_key(topic_partition: TopicPartition) -> str:
    return f"Compacted topic cannot accept message without key in topic partition {topic_partition}"


def is_out_of_range(record: Record, rules: BatchRules, now_ms: int) -> bool:
    if rules.log_append_time or record.timestamp == NO_TIMESTAMP:
        return False
    return (
        record.timestamp - now_ms > rules.timestamp_after_max_ms
        or now_ms - record.timestamp > rules.timestamp_before_max_ms
    )


def out_of_range(record: Record, rules: BatchRules, now_ms: int) -> str:
    earliest = now_ms - rules.timestamp_before_max_ms
    latest = now_ms + rules.timestamp_after_max_ms
    return (
        f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. "
        f"The timestamp should be within [{earliest}, {latest}]"
    )
