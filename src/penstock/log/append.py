"""The result of an append, and the checks of batches that a follower appends."""

from collections.abc import Iterator

from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import BatchHeader, CorruptBatch, batches, crc_matches


class OffsetOutOfRange(KafkaError):
    """The log has no such offset: it was deleted, or is not written yet."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, asked: int, start: int, end: int) -> None:
        super().__init__(f"offset {asked} is outside [{start}, {end})")
        self.asked, self.start, self.end = asked, start, end


class OffsetsOutOfOrder(KafkaError):
    """A follower was given batches that do not follow its log's end."""


class Appended:
    """Where a batch was appended; a duplicate has the offsets of the original."""

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        log_append_time: int,
        log_start_offset: int,
        *,
        duplicate: bool,
        flush_due: bool,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time = log_append_time
        """-1 where records keep their create time."""
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate
        self.flush_due = flush_due
        """`flush.messages` is reached: acknowledge after a flush only."""


def checked_batches(
    view: memoryview, next_offset: int, *, is_empty: bool
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch that a leader sent, from `next_offset` on.

    An empty log accepts a first batch that begins before `next_offset` and ends after it:
    DeleteRecords may move the start of the leader's log into a batch, and batches are sent whole.
    """
    for position, header in batches(view):
        if not crc_matches(view, header, position):
            raise CorruptBatch(f"batch at offset {header.base_offset} does not match its CRC")
        if is_empty and position == 0 and header.last_offset >= next_offset:
            next_offset = min(next_offset, header.base_offset)
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            raise OffsetsOutOfOrder(
                f"a batch begins at offset {header.base_offset}, the log ends at {next_offset}"
            )
        next_offset = header.next_offset
        yield position, header
