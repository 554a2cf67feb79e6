"""NoOpRecord; written by codegen."""

from penstock.wire.schema import Message


class NoOpRecord(Message):
    pass
