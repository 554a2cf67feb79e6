"""Finds a record by its timestamp."""

from penstock.record.batch import BatchHeader
from penstock.record.invalid import InvalidRecord
from penstock.record.record import declared_count, payload_view
from penstock.record.varint import read_varint, read_varlong
from penstock.types import Buffer


def first_since(
    batch: Buffer, header: BatchHeader, timestamp: int, start: int, limit_bytes: int
) -> tuple[int, int] | None:
    """Timestamp and offset of the first record at or after `timestamp`, from offset `start` on.

    Creates no record objects and no copy: a batch may hold millions of records.
    """
    data = memoryview(payload_view(batch, header, limit_bytes))
    least_timestamp, least_offset = timestamp - header.base_timestamp, start - header.base_offset
    is_log_append_time, at = header.is_log_append_time, 0
    try:
        for _ in range(declared_count(header)):
            size, at = read_varint(data, at)
            end = at + size
            if size < 0:
                raise InvalidRecord(f"record of {size} bytes")
            timestamp_delta, at = read_varlong(data, at + 1)  # after the attributes
            if timestamp_delta >= least_timestamp or is_log_append_time:
                offset_delta, at = read_varint(data, at)
                if offset_delta >= least_offset:
                    found = header.base_timestamp + timestamp_delta
                    return (
                        header.max_timestamp if is_log_append_time else found,
                        header.base_offset + offset_delta,
                    )
            at = end
    except IndexError:
        raise InvalidRecord("the last record is truncated") from None
    return None
