"""Recognizes messages in the formats before record batches (v0 and v1, up to Kafka 0.10)."""

from struct import Struct
from typing import Final
from zlib import crc32

from penstock.errors import ConfigError
from penstock.log.files import LogFile
from penstock.record.batch import LENGTH_END, MAGIC, MAGIC_AT

_START: Final = Struct(">qiIb")  # offset, length, CRC, magic
_LEAST_LENGTH: Final = 14


class OldFormat(ConfigError):
    """A log has messages that only Kafka can read."""


def refuse_old_format(file: LogFile, position: int, end: int) -> None:
    """Raise `OldFormat` if a whole message of an old format begins at `position`.

    Recovery must not cut it as a damaged batch. Its own CRC tells the two apart.
    """
    start = file.read(position, _START.size)
    if len(start) < _START.size:
        return
    _, length, crc, magic = _START.unpack(start)
    size = LENGTH_END + length
    if not 0 <= magic < MAGIC or length < _LEAST_LENGTH or size > end - position:
        return
    if crc32(file.read(position + MAGIC_AT, size - MAGIC_AT)) == crc:
        raise OldFormat(
            f"{file.path} has messages in format v{magic} at byte {position}, which Penstock does "
            "not read: they are kept; copy the topic with Kafka, or move its directory away"
        )
