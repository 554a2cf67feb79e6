"""UserScramCredentialRecord; written by codegen."""

from penstock.wire.schema import Message, int8, int32


class UserScramCredentialRecord(Message):
    name: str = ""
    mechanism: int8 = 0
    salt: bytes = b""
    stored_key: bytes = b""
    server_key: bytes = b""
    iterations: int32 = 0
