"""SnapshotFooterRecord; written by codegen."""

from penstock.wire.schema import Message, int16


class SnapshotFooterRecord(Message):
    version: int16 = 0
