"""GetTelemetrySubscriptions (key 71); written by codegen."""

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, int8, int16, int32


class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: Uuid = NO_UUID


class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    client_instance_id: Uuid = NO_UUID
    subscription_id: int32 = 0
    accepted_compression_types: list[int8] = []
    push_interval_ms: int32 = 0
    telemetry_max_bytes: int32 = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = []
