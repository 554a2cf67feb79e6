"""A connection to a broker over a bare socket: one request, its response, decoded."""

import socket
from struct import unpack
from types import TracebackType
from typing import Self

from penstock.wire.apis import APIS, Api
from penstock.wire.client_frame import read_response_header, request_frame
from penstock.wire.codec import decode
from penstock.wire.frame import set_size
from penstock.wire.primitives import uvarint_bytes
from penstock.wire.schema import Message


class WireLink:
    """`with WireLink("host:port") as link: link.ask(request)`; the highest version by default."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        self.client_id = "test"
        self._stream = self._socket.makefile("rb")

    def post(
        self, request: Message, version: int | None = None, padding: int = 0
    ) -> tuple[Api, int]:
        """Sends a request that gets no response, such as one with acks=0.

        With `padding` it has an unknown tagged field of that many bytes; for flexible versions.
        """
        api = next(api for api in APIS.values() if api.request is type(request))
        version = api.high if version is None else version
        frame = request_frame(api, version, 1, self.client_id, request)
        if padding:
            assert frame[-1] == 0, "the request ends with its tagged fields, and has none"
            frame[-1:] = b"\x01\x63" + uvarint_bytes(padding) + bytes(padding)
            set_size(frame, ())
        self._socket.sendall(frame)
        return api, version

    def ask(self, request: Message, version: int | None = None) -> Message:
        api, version = self.post(request, version)
        (size,) = unpack(">i", self._stream.read(4))
        frame = self._stream.read(size)
        _, at = read_response_header(frame, api, version)
        return decode(api.response, version, frame[at:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()
        self._socket.close()
