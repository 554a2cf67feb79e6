"""The search for a record by its timestamp, in C where the extension was built (`_walk.c`)."""

from penstock.record.batch import BatchHeader, declared_count, payload_view
from penstock.record.invalid import InvalidRecord
from penstock.record.varint import read_varint, read_varlong
from penstock.types import Buffer

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def first_since(
    batch: Buffer, header: BatchHeader, timestamp: int, start: int, limit_bytes: int
) -> tuple[int, int] | None:
    """Timestamp and offset of the first record at or after `timestamp`, from offset `start` on.

    Makes no records and no copy: a batch may hold millions of them, hundreds of megabytes.
    """
    by_broker = header.is_log_append_time
    least = _LEAST if by_broker else timestamp - header.base_timestamp
    found = find(
        payload_view(batch, header, limit_bytes),
        declared_count(header),
        min(max(least, _LEAST), _MOST),
        min(max(start - header.base_offset, _LEAST), _MOST),
    )
    if found is None:
        return None
    timestamp_delta, offset_delta = found
    found_ms = header.max_timestamp if by_broker else header.base_timestamp + timestamp_delta
    return found_ms, header.base_offset + offset_delta


def find_in_python(
    data: Buffer, count: int, timestamp_delta: int, offset_delta: int, /
) -> tuple[int, int] | None:
    """The timestamp and offset deltas of the first record that has at least these."""
    data = memoryview(data)
    at = index = 0
    try:
        for index in range(count):
            size, at = read_varint(data, at)
            end = at + size
            if size < 0 or end > len(data):
                raise InvalidRecord(f"record {index} of {size} bytes, {len(data) - at} are left")
            found, at = read_varlong(data, at + 1)  # behind the attributes
            if found >= timestamp_delta:
                offset, at = read_varint(data, at)
                if offset >= offset_delta:
                    return found, offset
            at = end
    except IndexError:
        raise InvalidRecord(f"record {index} is cut") from None
    return None


try:
    from penstock.record import _walk

    find = _walk.find
except (ImportError, AttributeError):  # not built, or by an older version
    find = find_in_python
