"""ExpireDelegationToken (key 40); written by codegen."""

from penstock.wire.schema import Message, int16, int32, int64


class ExpireDelegationTokenRequest(Message):
    hmac: bytes = b""
    expiry_time_period_ms: int64 = 0


class ExpireDelegationTokenResponse(Message):
    error_code: int16 = 0
    expiry_timestamp_ms: int64 = 0
    throttle_time_ms: int32 = 0
