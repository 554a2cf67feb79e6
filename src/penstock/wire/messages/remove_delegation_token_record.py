"""RemoveDelegationTokenRecord; written by codegen."""

from penstock.wire.schema import Message


class RemoveDelegationTokenRecord(Message):
    token_id: str = ""
