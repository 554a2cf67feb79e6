"""GetTelemetrySubscriptions (key 71, v0): the metrics that a client should push (KIP-714).

A client without an instance id gets one. Counters are requested as totals since the client's start
(Kafka requests deltas), because `/metrics` shows totals.
Refused: a request before the interval is over.
"""

from penstock.broker.context import Context
from penstock.broker.translate.telemetry_client import telemetry_client
from penstock.record.compression import Codec
from penstock.types import NO_UUID, Uuid, random_uuid
from penstock.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

ACCEPTED = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""Best first, as in Kafka."""


def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, ctx: Context
) -> GetTelemetrySubscriptionsResponse:
    instance = request.client_instance_id
    if instance == NO_UUID:
        instance = Uuid(random_uuid(ctx.services.resources.chance).bytes)
    client = telemetry_client(instance, ctx)
    client.ask(ctx.now_ms)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance,
        subscription_id=client.subscription.id,
        accepted_compression_types=list(ACCEPTED),
        push_interval_ms=client.subscription.interval_ms,
        telemetry_max_bytes=ctx.services.config.metrics.telemetry_max_bytes,
        requested_metrics=list(client.subscription.metrics),
    )
