"""PushTelemetry (key 72); written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int8, int16, int32


class PushTelemetryRequest(Message):
    client_instance_id: Uuid = NO_UUID
    subscription_id: int32 = 0
    terminating: bool = False
    compression_type: int8 = 0
    metrics: bytes = b""


class PushTelemetryResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
