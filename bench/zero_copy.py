"""Zero copy, without a broker: a file to a socket by sendfile, by read and send, by mmap and send.

A fetch ends in one of these. Brokers have no switch for it (except TLS, which also encrypts), so
this compares the three ways, with the number of copies that each makes of every byte.
"""

import mmap
import os
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from resource import RUSAGE_SELF, getrusage
from statistics import median

from bench.report import aligned, rounded

FILE_BYTES = 256 << 20
CHUNK_BYTES = 64 << 10
SEND_BUFFER_BYTES = 102_400

Send = Callable[[socket.socket, int], int]
"""Sends the whole file of a descriptor; returns the number of system calls."""


def by_sendfile(link: socket.socket, file: int) -> int:
    at = calls = 0
    while at < FILE_BYTES:
        at += os.sendfile(link.fileno(), file, at, CHUNK_BYTES)
        calls += 1
    return calls


def by_read(link: socket.socket, file: int) -> int:
    buffer = memoryview(bytearray(CHUNK_BYTES))
    at = calls = 0
    while at < FILE_BYTES:
        left = buffer[: os.preadv(file, [buffer], at)]
        at += len(left)
        calls += 1
        while left:
            left = left[link.send(left) :]
            calls += 1
    return calls


def by_mmap(link: socket.socket, file: int) -> int:
    at = calls = 0
    with mmap.mmap(file, FILE_BYTES, prot=mmap.PROT_READ) as mapped, memoryview(mapped) as view:
        while at < FILE_BYTES:
            with view[at : at + CHUNK_BYTES] as chunk:
                at += link.send(chunk)
            calls += 1
    return calls + 2


WAYS: tuple[tuple[str, Send, int], ...] = (
    ("sendfile", by_sendfile, 0),
    ("pread + send", by_read, 2),
    ("mmap + send", by_mmap, 1),
)
"""The number is that of copies by the CPU from page cache to socket buffer; over loopback the
reader adds another.
"""


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_s: float
    calls: int
    switches: int


def cost(send: Send, link: socket.socket, file: int) -> Cost:
    before = getrusage(RUSAGE_SELF)
    calls = send(link, file)
    after = getrusage(RUSAGE_SELF)
    return Cost(
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        calls,
        after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw,
    )


def connected_reader() -> tuple[socket.socket, int]:
    """A loopback connection, and the pid of the process that reads its other end until closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        reader = os.fork()
        if reader == 0:
            with socket.create_connection(server.getsockname()) as link:
                buffer = bytearray(CHUNK_BYTES)
                while link.recv_into(buffer):
                    pass
            os._exit(0)
        return server.accept()[0], reader


def zero_copy(rounds: int) -> list[dict[str, object]]:
    """Medians for each way over interleaved rounds; the file is in the page cache."""
    costs: dict[str, list[Cost]] = {name: [] for name, _, _ in WAYS}
    with tempfile.TemporaryFile() as file:
        file.write(os.urandom(1 << 20) * (FILE_BYTES >> 20))
        file.flush()
        link, reader = connected_reader()
        with link:
            for _ in range(rounds):
                for name, send, _ in WAYS:
                    costs[name].append(cost(send, link, file.fileno()))
        os.waitpid(reader, 0)
    per_gb = 1e9 / FILE_BYTES
    return [
        {
            "way": name,
            "copies": copies,
            "CPU s per GB": median(each.cpu_s for each in costs[name]) * per_gb,
            "system calls per GB": median(each.calls for each in costs[name]) * per_gb,
            "context switches per GB": median(each.switches for each in costs[name]) * per_gb,
        }
        for name, _, copies in WAYS
    ]


def text(rows: list[dict[str, object]]) -> str:
    def shown(value: object) -> str:
        return rounded(value) if isinstance(value, float) else str(value)

    return aligned([list(rows[0]), *([shown(value) for value in row.values()] for row in rows)])
