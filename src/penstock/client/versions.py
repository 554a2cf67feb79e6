"""Which version of each API client and broker speak (KIP-511)."""

from collections.abc import Iterable, Mapping

from penstock.client.errors import UnsupportedVersion, check
from penstock.errors import ErrorCode
from penstock.types import Buffer
from penstock.wire.apis import APIS, Api
from penstock.wire.codec import decode
from penstock.wire.header import API_VERSIONS
from penstock.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

FIRST_ASKED = 4
"""Asked at first; a broker that does not know it answers with what it knows instead."""


def common(offered: Iterable[ApiVersion]) -> dict[int, int]:
    """The highest version that both sides speak, by API key."""
    highest = {}
    for theirs in offered:
        api = APIS.get(theirs.api_key)
        if api is not None:
            version = min(api.high, theirs.max_version)
            if version >= max(api.low, theirs.min_version):
                highest[api.key] = version
    return highest


def read_answer(body: Buffer, version: int) -> ApiVersionsResponse:
    """A broker that does not know `version` answers in version 0; its error code comes first."""
    refused = int.from_bytes(body[:2], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION
    return decode(ApiVersionsResponse, 0 if refused else version, body)


def asked_again(refusal: ApiVersionsResponse, peer: str) -> int:
    """The version of ApiVersions to ask with next; 0 where the broker does not say."""
    if refusal.error_code != ErrorCode.UNSUPPORTED_VERSION:
        check(refusal.error_code, f"ApiVersions of {peer}")
    return chosen(common(refusal.api_keys) or {API_VERSIONS: 0}, APIS[API_VERSIONS], peer)


def chosen(versions: Mapping[int, int], api: Api, peer: str) -> int:
    version = versions.get(api.key)
    if version is None:
        raise UnsupportedVersion(
            f"{peer} speaks no version of {api.name} from {api.low} to {api.high}"
        )
    return version
