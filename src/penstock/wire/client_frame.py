"""The client's half of the framing: requests to send, and headers of the responses received."""

from struct import Struct
from typing import Final

from penstock.errors import ProtocolError
from penstock.types import Buffer
from penstock.wire.apis import Api
from penstock.wire.codec import encoder
from penstock.wire.frame import (
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    FIXED,
    WITH_CLIENT_ID,
    set_size,
)
from penstock.wire.primitives import MALFORMED, reason, skip_tags
from penstock.wire.schema import Message

_CORRELATION_ID: Final = Struct(">i")


def write_request_header(
    out: bytearray, api: Api, version: int, correlation_id: int, client_id: str | None
) -> None:
    if api.key == CONTROLLED_SHUTDOWN and version == 0:
        out += FIXED.pack(api.key, version, correlation_id)
        return
    name = b"" if client_id is None else client_id.encode()
    size = -1 if client_id is None else len(name)
    out += WITH_CLIENT_ID.pack(api.key, version, correlation_id, size)
    out += name
    if version >= api.flexible:
        out.append(0)


def read_response_header(frame: Buffer, api: Api, version: int) -> tuple[int, int]:
    """The correlation id of a response, and the position of its body."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        at = 4
        if version >= api.flexible and api.key != API_VERSIONS:
            at = skip_tags(frame, 5, frame[4])
    except MALFORMED as error:
        raise ProtocolError(f"response header: {reason(error)}") from None
    return correlation_id, at


def request_frame(
    api: Api, version: int, correlation_id: int, client_id: str | None, request: Message
) -> bytearray:
    out = bytearray(4)
    write_request_header(out, api, version, correlation_id, client_id)
    splices = encoder(type(request), version)(request, out)
    assert not splices, "a request's records are in memory"
    set_size(out, splices)
    return out
