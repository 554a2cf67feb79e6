"""ListConfigResources (key 74, v0-v1): resources with settings (KIP-1142), by type.

Without types, all are listed; groups only if they have settings. v0 lists client metrics
subscriptions only.
"""

from penstock.broker.context import Context
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ErrorCode
from penstock.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


def list_config_resources(
    request: ListConfigResourcesRequest, ctx: Context
) -> ListConfigResourcesResponse:
    requested = (
        {ConfigResourceType.CLIENT_METRICS}
        if ctx.version == 0
        else set(request.resource_types) or set(ConfigResourceType)
    )
    if not requested <= set(ConfigResourceType):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = ctx.services.cluster.image
    brokers = [str(broker) for broker in image.brokers]
    names = {
        ConfigResourceType.GROUP: list(image.group_configs),
        ConfigResourceType.CLIENT_METRICS: list(image.client_metrics),
        ConfigResourceType.BROKER_LOGGER: brokers,
        ConfigResourceType.BROKER: brokers,
        ConfigResourceType.TOPIC: list(image.topics),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, known in names.items()
            if kind in requested
            for name in known
        ]
    )
