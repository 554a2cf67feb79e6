"""SnapshotHeaderRecord; written by codegen."""

from penstock.wire.schema import Message, int16, int64


class SnapshotHeaderRecord(Message):
    version: int16 = 0
    last_contained_log_timestamp: int64 = 0
