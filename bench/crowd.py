"""Many group members over bare sockets, one connection each, which cost little CPU.

With a client library for each, its threads and CPU would show up as the broker's latency.
"""

import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from struct import unpack_from
from typing import TypeVar

from peers.process import PeerError
from penstock.wire.apis import APIS
from penstock.wire.client_frame import read_response_header, request_frame
from penstock.wire.codec import decode
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)
TIMEOUT_S = 60
API_OF = {api.request: api for api in APIS.values()}


def framed(request: Message, version: int) -> bytes:
    return bytes(request_frame(API_OF[type(request)], version, 1, "bench", request))


def read(frame: bytes, request: type[Message], response: type[R], version: int) -> R:
    _, at = read_response_header(frame, API_OF[request], version)
    return decode(response, version, frame[at:])


class Crowd:
    """Connections by number, each with at most one request in flight."""

    def __init__(self, port: int, size: int) -> None:
        self._poll = select.epoll()
        self._sockets: list[socket.socket] = []
        self._number: dict[int, int] = {}
        self._parts: dict[int, bytearray] = {}
        for number in range(size):
            connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets.append(connection)
            self._number[connection.fileno()] = number
            self._poll.register(connection, select.EPOLLIN)

    def __len__(self) -> int:
        return len(self._sockets)

    def send(self, number: int, frame: bytes) -> None:
        self._sockets[number].sendall(frame)

    def answers(self, timeout_s: float) -> Iterator[tuple[int, bytes]]:
        """Responses that are complete; waits up to `timeout_s` for the first data."""
        for fd, _ in self._poll.poll(timeout_s, 256):
            number = self._number[fd]
            received = self._sockets[number].recv(1 << 20)
            if not received:
                raise PeerError(f"the broker closed connection {number}")
            part = self._parts.pop(number, bytearray()) + received
            if len(part) < 4 or len(part) < 4 + unpack_from(">i", part)[0]:
                self._parts[number] = part
            else:
                yield number, bytes(part[4:])

    def ask(self, frames: Mapping[int, bytes], over_s: float = 0) -> dict[int, bytes]:
        """Sends all requests, at once or spread over `over_s`, then waits for all responses."""
        for number, frame in frames.items():
            self.send(number, frame)
            if over_s:
                time.sleep(over_s / len(frames))
        found: dict[int, bytes] = {}
        deadline_s = time.monotonic() + TIMEOUT_S
        while len(found) < len(frames):
            found.update(self.answers(1))
            if time.monotonic() > deadline_s:
                raise PeerError(f"{len(frames) - len(found)} members wait for an answer")
        return found

    def close(self) -> None:
        for each in self._sockets:
            each.close()
        self._poll.close()


@contextmanager
def crowd(port: int, size: int) -> Iterator[Crowd]:
    made = Crowd(port, size)
    try:
        yield made
    finally:
        made.close()


def closed_loop(people: Crowd, frames: Sequence[bytes], seconds: float) -> int:
    """Every connection repeats its request as soon as it is answered; returns the number of
    answers.

    All requests have the same correlation id, so a good answer has the same bytes each time.
    """
    good = people.ask(dict(enumerate(frames)))
    for number, frame in enumerate(frames):
        people.send(number, frame)
    done, end_s = 0, time.monotonic() + seconds
    while time.monotonic() < end_s:
        for number, answer in people.answers(0.1):
            if answer != good[number]:
                raise PeerError(f"another answer than before: {answer.hex()}")
            people.send(number, frames[number])
            done += 1
    _drain(people, len(frames))
    return done


def paced(people: Crowd, frames: Sequence[bytes], interval_s: float, seconds: float) -> int:
    """Every connection sends its request once per interval, evenly spread; returns the
    number of answers.
    """
    good = people.ask(dict(enumerate(frames)))
    begin_s, sent, done = time.monotonic(), 0, 0
    step_s = interval_s / len(frames)
    while (now_s := time.monotonic()) < begin_s + seconds:
        while begin_s + sent * step_s <= now_s:
            people.send(sent % len(frames), frames[sent % len(frames)])
            sent += 1
        for number, answer in people.answers(max(begin_s + sent * step_s - time.monotonic(), 0)):
            if answer != good[number]:
                raise PeerError(f"another answer than before: {answer.hex()}")
            done += 1
    _drain(people, sent - done)
    return done


def _drain(people: Crowd, count: int) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while count > 0 and time.monotonic() < deadline_s:
        count -= sum(1 for _ in people.answers(1))


def until(condition: Callable[[], bool], every_s: float = 0.0) -> float:
    """Waits until the condition holds; returns the seconds it took."""
    began_s = time.monotonic()
    while not condition():
        if time.monotonic() > began_s + TIMEOUT_S:
            raise PeerError("it did not come to be in time")
        time.sleep(every_s)
    return time.monotonic() - began_s


def checked(codes: Iterable[int], what: str) -> None:
    wrong = {code for code in codes if code}
    if wrong:
        raise PeerError(f"{what}: error codes {sorted(wrong)}")
