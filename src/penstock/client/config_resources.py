"""Lists the resources that have settings of their own (KIP-1142)."""

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.config.resource_type import ConfigResourceType
from penstock.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


async def list_config_resources(client: Client, kind: ConfigResourceType) -> list[str]:
    """The names of all resources of a type, sorted."""

    def raise_refusal(response: ListConfigResourcesResponse) -> None:
        check(response.error_code, "resources with settings")

    response = await client.call(
        ListConfigResourcesRequest(resource_types=[kind]),
        ListConfigResourcesResponse,
        check=raise_refusal,
    )
    return sorted(
        each.resource_name for each in response.config_resources if each.resource_type == kind
    )
