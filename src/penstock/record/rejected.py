"""Which records of a refused batch are at fault, and in which words (KIP-467).

The walk that every batch passes only says that something is wrong. Here the batch is read once
more, by the rules and in the words of Kafka's own broker, so that a producer can drop those
records and send the rest.
"""

from itertools import islice
from typing import NamedTuple

from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import NO_TIMESTAMP, BatchHeader
from penstock.record.record import Record, records
from penstock.record.validate import BatchRules
from penstock.types import Buffer, TopicPartition

EXAMINED = 10_000
"""Records looked at: each costs some microseconds, during which no other client is served."""
SHOWN = 3


class RecordError(NamedTuple):
    """One record at fault, by its number in the batch."""

    batch_index: int
    message: str

    def __str__(self) -> str:
        return f"RecordError(batchIndex={self.batch_index}, message='{self.message}')"


class RejectedRecords(KafkaError):
    """A batch refused for some of its records."""

    def __init__(self, code: ErrorCode, text: str, errors: list[RecordError]) -> None:
        super().__init__(text)
        self.code, self.errors = code, errors


def rejection(
    batch: Buffer,
    header: BatchHeader,
    rules: BatchRules,
    topic_partition: TopicPartition,
    *,
    keys_required: bool,
    now_ms: int,
    limit_bytes: int,
) -> RejectedRecords | None:
    """The refusal that names the records; None if it is not for single records."""
    errors: list[RecordError] = []
    code = ErrorCode.INVALID_RECORD
    try:
        for index, record in enumerate(islice(records(batch, header, limit_bytes), EXAMINED)):
            if keys_required and record.key is None:
                errors.append(RecordError(index, missing_key(topic_partition)))
            elif is_out_of_range(record, rules, now_ms):
                errors.append(RecordError(index, out_of_range(record, rules, now_ms)))
                code = ErrorCode.INVALID_TIMESTAMP
    except KafkaError:
        return None  # malformed: there are no records to speak of
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
