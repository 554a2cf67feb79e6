"""RenewDelegationToken (key 39); written by codegen."""

from penstock.wire.schema import Message, int16, int32, int64


class RenewDelegationTokenRequest(Message):
    hmac: bytes = b""
    renew_period_ms: int64 = 0


class RenewDelegationTokenResponse(Message):
    error_code: int16 = 0
    expiry_timestamp_ms: int64 = 0
    throttle_time_ms: int32 = 0
