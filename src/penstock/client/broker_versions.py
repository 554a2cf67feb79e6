"""The API versions and features that a broker offers."""

from penstock.client import versions
from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.route import Route
from penstock.wire.messages.api_versions import ApiVersionsResponse


async def broker_versions(client: Client, to: Route) -> ApiVersionsResponse:
    """The broker's response, including APIs that this client does not know."""

    def raise_refusal(response: ApiVersionsResponse) -> None:
        check(response.error_code, "API versions")

    return await client.call(
        versions.api_versions_request(), ApiVersionsResponse, to=to, check=raise_refusal
    )
