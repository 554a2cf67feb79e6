"""SaslAuthenticate (key 36); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int64


class SaslAuthenticateRequest(Message):
    auth_bytes: bytes = b""


class SaslAuthenticateResponse(Message):
    error_code: int16 = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[int64, V("1+")] = 0
