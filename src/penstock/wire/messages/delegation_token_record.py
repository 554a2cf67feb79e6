"""DelegationTokenRecord; written by codegen."""

from penstock.wire.schema import Message, int64


class DelegationTokenRecord(Message):
    owner: str = ""
    requester: str = ""
    renewers: list[str] = []
    issue_timestamp: int64 = 0
    max_timestamp: int64 = 0
    expiration_timestamp: int64 = 0
    token_id: str = ""
