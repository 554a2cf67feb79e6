"""EndTransactionRecord; written by codegen."""

from penstock.wire.schema import Message


class EndTransactionRecord(Message):
    pass
