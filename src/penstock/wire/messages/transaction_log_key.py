"""TransactionLogKey; written by codegen."""

from penstock.wire.schema import Message


class TransactionLogKey(Message):
    transactional_id: str = ""
