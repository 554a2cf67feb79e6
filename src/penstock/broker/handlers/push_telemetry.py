"""PushTelemetry (key 72, v0): a client's metrics, which `/metrics` shows (KIP-714).

Refused: an outdated subscription, a push before the interval is over or after the terminating one,
unknown compression, more than `telemetry.max.bytes` before or after decompression, data that is not
OpenTelemetry's.
"""

import asyncio

from penstock.broker.context import Context
from penstock.broker.telemetry.clients import MAX_SERIES_PER_CLIENT, TelemetryTooLarge
from penstock.broker.telemetry.otlp import DataPoint, data_points
from penstock.broker.translate.telemetry_client import telemetry_client
from penstock.errors import InvalidRequest
from penstock.record.compression import (
    CODECS,
    Codec,
    DecompressionLimit,
    UnknownCodec,
    decompress,
)
from penstock.types import NO_UUID, Buffer, uuid_text
from penstock.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


async def push_telemetry(request: PushTelemetryRequest, ctx: Context) -> PushTelemetryResponse:
    services, text = ctx.services, uuid_text(request.client_instance_id)
    if request.client_instance_id == NO_UUID:
        raise InvalidRequest(
            f"Invalid request from the client [{text}], invalid client instance id"
        )
    client = telemetry_client(request.client_instance_id, ctx)
    client.push(request.subscription_id, ctx.now_ms, terminating=request.terminating)
    codec = CODECS.get(request.compression_type)
    if codec is None:
        client.may_ask = True
        raise UnknownCodec(
            f"Unknown compression type [{request.compression_type}] is received in telemetry "
            f"request from [{text}]"
        )
    limit = services.config.metrics.telemetry_max_bytes
    if len(request.metrics) > limit:
        raise TelemetryTooLarge(
            f"Telemetry request from [{text}] is larger than the maximum allowed size [{limit}]"
        )
    client.terminating = request.terminating
    # On another thread: a large push would delay all other requests.
    points = await asyncio.get_running_loop().run_in_executor(
        services.resources.worker, read, codec, request.metrics, limit
    )
    services.telemetry.received(client, points)
    return PushTelemetryResponse()


def read(codec: Codec, metrics: Buffer, limit: int) -> list[DataPoint]:
    try:
        data = decompress(codec, metrics, limit) if metrics else b""
    except DecompressionLimit:
        raise TelemetryTooLarge(
            f"Decompressed telemetry metrics exceed maximum allowed size: {limit}"
        ) from None
    return data_points(memoryview(data), MAX_SERIES_PER_CLIENT)
