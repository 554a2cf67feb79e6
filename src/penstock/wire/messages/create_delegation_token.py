"""CreateDelegationToken (key 38); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32, int64


class CreatableRenewers(Message):
    principal_type: str = ""
    principal_name: str = ""


class CreateDelegationTokenRequest(Message):
    owner_principal_type: Annotated[str | None, V("3+")] = ""
    owner_principal_name: Annotated[str | None, V("3+")] = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: int64 = 0


class CreateDelegationTokenResponse(Message):
    error_code: int16 = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, V("3+")] = ""
    token_requester_principal_name: Annotated[str, V("3+")] = ""
    issue_timestamp_ms: int64 = 0
    expiry_timestamp_ms: int64 = 0
    max_timestamp_ms: int64 = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int32 = 0
