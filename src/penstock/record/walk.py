"""Checks the structure of a batch's records without creating record objects.

Every produced batch is walked, as in Kafka: every consumer must be able to read what the broker
stores. Compressed batches are decompressed for it into the broker's one scratch buffer, and stored
as they came.

The walk exists twice, with the same results and the same error texts: in C (`_walk.c`, about 10 ns
a record) and in Python (0.9 µs), for installations without a C compiler or Python's headers.
Checking and appending a 64 KB batch takes 0.04 ms in C and 0.1 ms in Python with records of 1 KB,
0.05 ms and 0.6 ms with records of 100 bytes. `NATIVE` says which one runs, and the broker logs it
at start. `PENSTOCK_PURE=1` at installation leaves the extension out. Change both together:
`tests/property/test_walk_twins.py` compares results and texts for any bytes.
"""

from penstock.record.invalid import InvalidRecord
from penstock.record.varint import read_varint, read_varlong
from penstock.types import Buffer

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def walk_in_python(data: Buffer, count: int, keys_required: bool, /) -> tuple[int, int]:  # noqa: FBT001 - as the extension takes it
    """The least and the greatest timestamp delta of the `count` records in `data`; (0, 0) for none.

    Raises `InvalidRecord` for wrong sizes, counts, offsets other than 0..n-1, or a missing key if
    keys are required. One-byte numbers are read inline, because calls cost most here.
    """
    data = bytes(data)
    at = index = 0
    oldest, newest = _MOST, _LEAST
    try:
        for index in range(count):
            size, at = read_varint(data, at)
            end = at + size
            if size < 0 or end > len(data):
                raise InvalidRecord(f"record {index} of {size} bytes, {len(data) - at} are left")
            at += 1  # attributes, all unused
            byte = data[at]
            if byte < 0x80:
                timestamp_delta, at = byte >> 1 ^ -(byte & 1), at + 1
            else:
                timestamp_delta, at = read_varlong(data, at)
            if timestamp_delta > newest:  # noqa: PLR1730 - a call costs more
                newest = timestamp_delta
            if timestamp_delta < oldest:  # noqa: PLR1730 - likewise
                oldest = timestamp_delta
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
            # Catches lengths that run past the record: `at` only ever moves forward.
            if at != end:
                raise InvalidRecord(f"record {index} of {size} bytes has {size + at - end}")
    except IndexError:
        raise InvalidRecord(f"record {index} is cut") from None
    if at != len(data):
        raise InvalidRecord(f"{len(data) - at} bytes follow the last record")
    return (oldest, newest) if count > 0 else (0, 0)


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


try:
    from penstock.record import _walk
except ImportError:
    NATIVE, walk = False, walk_in_python
else:
    NATIVE, walk = True, _walk.walk
