"""A plain socket to a broker: bytes go out, whole frames come back, or the connection ends."""

import socket
import struct

from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.frame import API_VERSIONS
from penstock.wire.messages.api_versions import ApiVersionsRequest

CORRELATION_ID = 41
PROBE_ID = 42
PROBE = bytes(request_frame(APIS[API_VERSIONS], 0, PROBE_ID, None, ApiVersionsRequest()))
"""Sent after every request: a request without an answer before this one's never gets one."""

TIMEOUT_S = 15


class Link:
    """Connects at first use, and again after the broker has closed the connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def ask(self, data: bytes, *, ends: bool = False) -> tuple[list[bytes], str]:
        """The frames received, and the state of the connection afterwards."""
        link = self._connected()
        frames: list[bytes] = []
        try:
            link.sendall(data if ends else data + PROBE)
            if ends:
                link.shutdown(socket.SHUT_WR)
            while True:
                frame = _frame(link)
                if struct.unpack_from(">i", frame) == (PROBE_ID,):
                    return frames, "open"
                frames.append(frame)
        except TimeoutError:
            self.close()
            return frames, "silent"
        except (ConnectionError, EOFError):
            self.close()
            return frames, "closed"

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket


def _frame(link: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _exactly(link, 4))
    return _exactly(link, size)


def _exactly(link: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = link.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
