"""RemoveUserScramCredentialRecord; written by codegen."""

from penstock.wire.schema import Message, int8


class RemoveUserScramCredentialRecord(Message):
    name: str = ""
    mechanism: int8 = 0
