"""Negotiates the version of each API with a broker (KIP-511)."""

from collections.abc import Iterable, Mapping

from penstock import __version__
from penstock.client.errors import UnsupportedVersion, check
from penstock.errors import ErrorCode
from penstock.types import Buffer
from penstock.wire.apis import APIS, Api
from penstock.wire.codec import decode
from penstock.wire.frame import API_VERSIONS
from penstock.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

FIRST_VERSION = 4
"""Version of the first ApiVersions request; an older broker answers with the ones it supports."""


def api_versions_request(software: str = "penstock") -> ApiVersionsRequest:
    """Names the client software and its version."""
    return ApiVersionsRequest(client_software_name=software, client_software_version=__version__)


def common(offered: Iterable[ApiVersion]) -> dict[int, int]:
    """The highest version that both sides support, by API key."""
    highest = {}
    for theirs in offered:
        api = APIS.get(theirs.api_key)
        if api is not None:
            version = min(api.high, theirs.max_version)
            if version >= max(api.low, theirs.min_version):
                highest[api.key] = version
    return highest


def read_response(body: Buffer, version: int) -> ApiVersionsResponse:
    """Decode a response; a broker that does not support `version` answers in version 0.

    The error code, which is the first field at any version, tells the two apart.
    """
    is_unsupported = int.from_bytes(body[:2], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION
    return decode(ApiVersionsResponse, 0 if is_unsupported else version, body)


def second_version(response: ApiVersionsResponse, peer: str) -> int:
    """The version of the second ApiVersions request; 0 if the broker does not name one."""
    if response.error_code != ErrorCode.UNSUPPORTED_VERSION:
        check(response.error_code, f"ApiVersions of {peer}")
    return chosen(common(response.api_keys) or {API_VERSIONS: 0}, APIS[API_VERSIONS], peer)


def chosen(versions: Mapping[int, int], api: Api, peer: str) -> int:
    version = versions.get(api.key)
    if version is None:
        raise UnsupportedVersion(
            f"{peer} supports no version of {api.name} from {api.low} to {api.high}"
        )
    return version
