"""The answer to an ApiVersions request that is newer than the broker (KIP-511)."""

from penstock.errors import ErrorCode
from penstock.wire.apis import APIS
from penstock.wire.frame import API_VERSIONS, response_frame
from penstock.wire.messages.api_versions import ApiVersion, ApiVersionsResponse


def api_versions_refusal(correlation_id: int) -> bytearray:
    """A response of version 0, which every client reads, with the versions to retry with."""
    api = APIS[API_VERSIONS]
    response = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=api.key, min_version=api.low, max_version=api.high)],
    )
    frame, _ = response_frame(api, 0, correlation_id, response)
    return frame
