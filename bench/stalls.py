"""How long requests wait for the event loop: python -m bench stalls [options]

A probe sends a request that costs nothing, again and again, and measures its response time: first
at an idle broker, then beside each kind of work that may hold up the loop. The idle figure is the
machine's share; the difference is the broker's.
"""

import argparse
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import quantiles

from bench.batch import MB_1, Batch
from bench.interpreter import about
from bench.load.generator import load
from bench.report import Report
from bench.subject import Kafka, Penstock, Subject
from bench.topic import create, delete, topic

from penstock.record.compression import Codec
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.api_versions import ApiVersionsRequest

AIM_MS = 5
P99_9 = "p99.9 ms"
OVER_IDLE = "p99.9 over idle, ms"
AIMS = {OVER_IDLE: f"<= {AIM_MS} ms"}
PAUSE_S = 0.001
GZIP_MB_1 = Batch(1 << 20, 1_000, Codec.GZIP)
GZIP_MB_4 = Batch(4 << 20, 1_000, Codec.GZIP)
"""Batches whose records have these sizes uncompressed."""
SMALL_SEGMENTS = {"segment.bytes": "4194304", "retention.bytes": "8388608"}
"""A paced producer of 1 MB batches rolls up to 25 segments per second; retention deletes them."""
PACE_US = 10_000
"""Between an answer and the next batch. At full speed a producer alone keeps the loop busy, and a
probe also measures how long it waits behind requests of 1 MB.
"""


def waits_ms(port: int, seconds: float) -> list[float]:
    """Response times of one request at a time, with a short pause after each answer."""
    ask = bytes(request_frame(APIS[18], 0, 1, "probe", ApiVersionsRequest()))
    found = []
    with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ends_s = time.perf_counter() + seconds
        while (began_s := time.perf_counter()) < ends_s:
            link.sendall(ask)
            (size,) = struct.unpack(">i", exactly(link, 4))
            exactly(link, size)
            found.append((time.perf_counter() - began_s) * 1000)
            time.sleep(PAUSE_S)
    return found


def exactly(link: socket.socket, size: int) -> bytes:
    return link.recv(size, socket.MSG_WAITALL)


def produces(port: int, folder: Path, batch: Batch, config: dict[str, str], pause_us: int) -> None:
    """Produces for a second into a topic, then deletes it."""
    with topic(port, f"stalls-{time.monotonic_ns()}", config=config) as name:
        load("produce", port, name, batch=batch.file(folder), seconds=1, pause_us=pause_us)


def creates(port: int, numbers: Iterator[int]) -> None:
    """Creates a topic of many partitions in the metadata store and deletes it again."""
    name = f"stalls-many-{next(numbers)}"
    create(port, name, 50, {})
    delete(port, name)


def works(port: int, folder: Path) -> dict[str, list[Callable[[], None]]]:
    """The work that runs beside the probe, by name."""
    numbers = count()

    def writes(batch: Batch, config: dict[str, str], pause_us: int) -> Callable[[], None]:
        return lambda: produces(port, folder, batch, config, pause_us)

    def all_writes(pause_us: int) -> list[Callable[[], None]]:
        return [
            writes(GZIP_MB_1, {}, pause_us),
            writes(GZIP_MB_4, {}, pause_us),
            writes(MB_1, SMALL_SEGMENTS, pause_us),
        ]

    gzip_1, gzip_4, segments = all_writes(PACE_US)
    topics = partial(creates, port, numbers)
    return {
        "idle": [],
        "gzip, 1 MB of records a batch": [gzip_1],
        "gzip, 4 MB of records a batch": [gzip_4],
        "segments rolled and deleted": [segments],
        "topics of 50 partitions made and deleted": [topics],
        "all of these": [gzip_1, gzip_4, segments, topics],
        "all of these, at full speed": [*all_writes(0), topics],
    }


@contextmanager
def running(calls: list[Callable[[], None]]) -> Iterator[None]:
    """Repeats each call on its own thread until the block ends."""
    stop = threading.Event()

    def repeat(call: Callable[[], None]) -> None:
        while not stop.is_set():
            call()

    threads = [threading.Thread(target=repeat, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def figures(waits: list[float]) -> dict[str, float]:
    marks = quantiles(waits, n=1000, method="inclusive")
    return {"p50 ms": marks[499], P99_9: marks[998], "longest ms": max(waits)}


def measured(subject: Subject, folder: Path, seconds: float, report: Report) -> None:
    idle: dict[str, float] = {}
    for name, calls in works(subject.port, folder).items():
        with running(calls):
            time.sleep(0.5 if calls else 0)
            found = figures(waits_ms(subject.port, seconds))
        idle = idle or found
        if calls:
            found = beside(idle, found)
        report.add(name, subject.name, found, AIMS)


def beside(idle: dict[str, float], found: dict[str, float]) -> dict[str, float]:
    """Adds how much longer the p99.9 is than an idle broker's; that difference has the aim."""
    return {**found, OVER_IDLE: max(found[P99_9] - idle[P99_9], 0.0)}


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench stalls")
    parser.add_argument("--only", choices=("kafka", "penstock"), help="run one broker alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--out", type=Path, help="write the figures here too, as JSON")
    args = parser.parse_args(argv)
    described, report = about(), Report()
    subjects = [kind for kind in (Penstock, Kafka) if args.only in (None, kind.__name__.lower())]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        started = [kind(stack) for kind in subjects]
        for _ in range(args.rounds):
            for subject in started:
                measured(subject, folder, args.seconds, report)
        print(f"waits for an answer; aim: p99.9 within {AIM_MS} ms of an idle broker's")
        print(report.text())
    report.keep(args.out, about=described, rounds=args.rounds)
