"""Request and response headers, as a broker reads and writes them.

Headers of flexible versions have tagged fields too, except the response to ApiVersions. It has the
oldest header at every version, because the client reads it before it knows which versions the
broker supports (KIP-511).
"""

from struct import Struct
from typing import Final

from penstock.errors import ProtocolError
from penstock.types import Buffer
from penstock.wire.apis import APIS, Api
from penstock.wire.primitives import MALFORMED, MalformedError, reason, skip_tags

API_VERSIONS: Final = 18
CONTROLLED_SHUTDOWN: Final = 7

FIXED: Final = Struct(">hhi")
WITH_CLIENT_ID: Final = Struct(">hhih")
_START: Final = Struct(">ii")
_FLEXIBLE_START: Final = Struct(">iix")


class RequestHeader:
    """The API, its version, the client, and the correlation id that the response must repeat."""

    def __init__(
        self,
        api: Api,
        version: int,
        correlation_id: int,
        client_id: str | None,
    ) -> None:
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id


def read_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """The header of a request, and the position of its body."""
    at = 0
    try:
        key, version, correlation_id, size = WITH_CLIENT_ID.unpack_from(frame)
        api = APIS.get(key)
        if api is None:
            raise MalformedError(f"unknown API key {key}")
        if key == CONTROLLED_SHUTDOWN and version == 0:
            return RequestHeader(api, version, correlation_id, None), FIXED.size
        at = 10
        client_id = None
        if size >= 0:
            at += size
            if at > len(frame):
                raise MalformedError(f"client id of {size} bytes")
            client_id = str(frame[10:at], "utf-8")
        if version >= api.flexible:
            tags = frame[at]
            at += 1
            if tags:
                at = skip_tags(frame, at, tags)
    except MALFORMED as error:
        raise ProtocolError(
            f"request header: {reason(error)} at byte {at} of {len(frame)}"
        ) from None
    return RequestHeader(api, version, correlation_id, client_id), at


def response_start(api: Api, version: int, correlation_id: int) -> bytearray:
    """The header of a response, after room for the size of its frame."""
    if version >= api.flexible and api.key != API_VERSIONS:
        return bytearray(_FLEXIBLE_START.pack(0, correlation_id))
    return bytearray(_START.pack(0, correlation_id))
