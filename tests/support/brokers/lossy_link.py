"""A link to a broker that loses one request, or the response to one."""

import socket
import struct
import threading
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Literal, Self

from peers.process import free_ports

PRODUCE = 0
OFFSET_COMMIT = 8
Loss = Literal["request", "answer"]


class LossyLink:
    """Forwards frames to the broker on `broker_port`, which must advertise `address`, and back.

    After `lose`, the next request of the API or its response is dropped together with its
    connection: the client cannot tell which of the two was lost.
    """

    def __init__(self, api_key: int = PRODUCE) -> None:
        self._api_key = api_key
        self.port, self.broker_port = free_ports(2)
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._lock = threading.Lock()
        self._next: Loss | None = None
        self.lost = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def lose(self, what: Loss) -> None:
        self._next = what

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the link is closed
            while True:
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self.broker_port))
                except OSError:  # a client that outlives the broker
                    cut(client)
                    continue
                asked: set[int] = set()
                for forward in (self._requests, self._answers):
                    thread = threading.Thread(
                        target=forward, args=(client, broker, asked), daemon=True
                    )
                    thread.start()

    def _requests(self, client: socket.socket, broker: socket.socket, asked: set[int]) -> None:
        with cut_at_end(client, broker):
            while frame := read_frame(client):
                key, _, correlation = struct.unpack_from(">hhi", frame, 4)
                if key == self._api_key:
                    asked.add(correlation)
                    if self._loses("request"):
                        return
                broker.sendall(frame)

    def _answers(self, client: socket.socket, broker: socket.socket, asked: set[int]) -> None:
        with cut_at_end(client, broker):
            while frame := read_frame(broker):
                (correlation,) = struct.unpack_from(">i", frame, 4)
                if correlation in asked and self._loses("answer"):
                    return
                client.sendall(frame)

    def _loses(self, what: Loss) -> bool:
        with self._lock:
            if self._next != what:
                return False
            self._next = None
        self.lost.set()
        return True


def cut_at_end(*sockets: socket.socket) -> ExitStack:
    stack = ExitStack()
    for each in sockets:
        stack.callback(cut, each)
    stack.enter_context(suppress(OSError))
    return stack


def cut(link: socket.socket) -> None:
    with suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
    link.close()


def read_frame(link: socket.socket) -> bytes:
    """A complete frame with its size; b"" at the end of the stream."""
    head = _read(link, 4)
    return head and head + _read(link, int.from_bytes(head))


def _read(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = link.recv(size - len(data))
        if not chunk:
            return b""
        data += chunk
    return data
