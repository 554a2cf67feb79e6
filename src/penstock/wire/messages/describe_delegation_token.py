"""DescribeDelegationToken (key 41); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32, int64


class DescribeDelegationTokenOwner(Message):
    principal_type: str = ""
    principal_name: str = ""


class DescribeDelegationTokenRequest(Message):
    owners: list[DescribeDelegationTokenOwner] | None = []


class DescribedDelegationTokenRenewer(Message):
    principal_type: str = ""
    principal_name: str = ""


class DescribedDelegationToken(Message):
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, V("3+")] = ""
    token_requester_principal_name: Annotated[str, V("3+")] = ""
    issue_timestamp: int64 = 0
    expiry_timestamp: int64 = 0
    max_timestamp: int64 = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = []


class DescribeDelegationTokenResponse(Message):
    error_code: int16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: int32 = 0
