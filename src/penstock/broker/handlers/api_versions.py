"""ApiVersions (key 18, v0-v5): the APIs and versions that this broker serves.

Only APIs with a handler are listed; inter-broker APIs only to brokers, and the APIs of client
metrics only while there is a subscription to them. Produce is listed from version 0, although 3 is
the lowest served: otherwise older librdkafka would not compress. Features are listed with their
current levels: at `transaction.version` 2 clients know that a first write adds its partition
(KIP-890). The broker remembers the client's software name for the connection.
Refused: invalid names of client software (v3), another cluster's id (v5, KIP-1242).
"""

import re

from penstock.broker.context import Context
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.features import SUPPORTED
from penstock.wire.apis import APIS
from penstock.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

PRODUCE = 0
TELEMETRY = {71, 72}
"""Listed while there is a subscription: librdkafka logs a line each time it asks."""

SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class InvalidSoftwareName(KafkaError):
    """The name or version is not valid as a metric label."""

    code = ErrorCode.INVALID_REQUEST


class RebootstrapRequired(KafkaError):
    """The client expects another cluster or broker at this address."""

    code = ErrorCode.REBOOTSTRAP_REQUIRED


def api_versions(request: ApiVersionsRequest, ctx: Context) -> ApiVersionsResponse:
    services = ctx.services
    features = services.cluster.image.features
    if ctx.version >= 3:
        for text in (request.client_software_name, request.client_software_version):
            if not SOFTWARE_NAME.fullmatch(text):
                raise InvalidSoftwareName(f"{text!r} is not a valid name or version of software")
        ctx.peer.software_name = request.client_software_name
        ctx.peer.software_version = request.client_software_version
    expected_cluster = request.cluster_id in {None, services.cluster.image.cluster_id}
    if not expected_cluster or request.node_id not in {-1, services.broker_id}:
        raise RebootstrapRequired(f"cluster {request.cluster_id}, broker {request.node_id}")
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=key,
                min_version=0 if key == PRODUCE else APIS[key].low,
                max_version=APIS[key].high,
            )
            for key in sorted(services.listeners.served)
            if services.listeners.serves(key, ctx.peer.listener)
            and (key not in TELEMETRY or services.cluster.image.client_metrics)
        ],
        # Clients before 3.9 fail on a feature whose lowest level is 0.
        supported_features=[
            SupportedFeatureKey(name, levels.low, levels.high)
            for name, levels in SUPPORTED.items()
            if levels.low > 0 or ctx.version >= 4
        ],
        finalized_features_epoch=features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name, level, level)
            for name, level in features.levels.items()
            if level > 0
        ],
    )
