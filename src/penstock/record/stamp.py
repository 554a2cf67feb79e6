"""Changes a batch's timestamps in place, and seals it with its new CRC."""

from struct import Struct
from typing import Final

from penstock.record.batch import CHECKED_FROM, LENGTH_END, LOG_APPEND_TIME
from penstock.record.crc import crc32c

_LENGTH: Final = Struct(">i")
_LENGTH_AT: Final = 8
_CRC: Final = Struct(">I")
_CRC_AT: Final = 17
_ATTRIBUTES: Final = Struct(">h")
_TIMESTAMP: Final = Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35


def stamp_log_append_time(buf: bytearray | memoryview, now_ms: int, at: int = 0) -> None:
    """Set LogAppendTime to `now_ms` for every record: changes one bit, one field and the CRC."""
    (attributes,) = _ATTRIBUTES.unpack_from(buf, at + CHECKED_FROM)
    _ATTRIBUTES.pack_into(buf, at + CHECKED_FROM, attributes | LOG_APPEND_TIME)
    _TIMESTAMP.pack_into(buf, at + _MAX_TIMESTAMP_AT, now_ms)
    seal(buf, at)


def stamp_max_timestamp(buf: bytearray | memoryview, max_timestamp: int, at: int = 0) -> None:
    """Set the records' largest timestamp in the header, as CreateTime (the producer's own)."""
    (attributes,) = _ATTRIBUTES.unpack_from(buf, at + CHECKED_FROM)
    _ATTRIBUTES.pack_into(buf, at + CHECKED_FROM, attributes & ~LOG_APPEND_TIME)
    _TIMESTAMP.pack_into(buf, at + _MAX_TIMESTAMP_AT, max_timestamp)
    seal(buf, at)


def seal(buf: bytearray | memoryview, at: int = 0) -> None:
    """Compute the CRC of the batch's current bytes and write it into the header."""
    (length,) = _LENGTH.unpack_from(buf, at + _LENGTH_AT)
    end = at + LENGTH_END + length
    _CRC.pack_into(buf, at + _CRC_AT, crc32c(memoryview(buf)[at + CHECKED_FROM : end]))
