"""Share groups of Penstock beside Apache Kafka's: python -m bench share [options]

One member over the bare protocol fetches and accepts records; each request accepts what the
previous one brought. The same with eight members, each with a connection, on one partition. Then
the latency of the acknowledgement of one record, which is answered once it is written.

Only for Penstock: the memory of 2,000 locks, which cannot be seen in a JVM, and how late a record
is redelivered after its backoff, which Kafka does not have.
"""

import argparse
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from bench.interpreter import about
from bench.load.generator import LoadError
from bench.report import Report
from bench.subject import Kafka, Penstock, Subject
from bench.topic import topic

from peers.jars import NotInstalledError
from peers.process import PeerError, wait_until
from penstock.broker.share.share_partition import (
    Acknowledgement,
    Acquisition,
    FetchedBatch,
    ShareLimits,
    SharePartition,
)
from penstock.cli.bench_figures import percentile
from penstock.wire.enums import AcknowledgeType
from support.brokers.wire_link import WireLink
from support.groups.share_member import (
    ACCEPT,
    RELEASE,
    ShareMember,
    configure_group,
    produce_records,
)

MEMBERS = 8
BATCHES, EACH = 200, 500
VALUE = b"x" * 100
LOCKS = 2000
LATE_MS = "<= 50"

_numbers = count()


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench share")
    parser.add_argument("--only", choices=("kafka", "penstock"), help="run one broker alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--out", type=Path, help="write the figures here too, as JSON")
    return parser.parse_args(argv)


@contextmanager
def filled(port: int) -> Iterator[str]:
    """A topic with 100,000 records of 100 bytes, and a group of the same name that starts
    at the first.
    """
    with (
        topic(port, f"bench-share-{next(_numbers)}") as name,
        WireLink(f"127.0.0.1:{port}") as link,
    ):
        configure_group(link, name, {"share.auto.offset.reset": "earliest"})
        for _ in range(BATCHES):
            produce_records(link, name, [(None, VALUE)] * EACH)
        yield name


@contextmanager
def member(port: int, group: str, name: str) -> Iterator[ShareMember]:
    found = ShareMember(f"127.0.0.1:{port}", group, name, group)
    try:
        wait_until(lambda: found.join().assignment is not None, 60, f"an assignment of {name}")
        first: list[tuple[int, int, int]] = []

        def has_one() -> bool:
            first.extend(found.acquired(most=1, share_acquire_mode=1))
            return bool(first)

        wait_until(has_one, 60, "a record")
        # A record in flight holds the start offset, and at most 2,000 records after it may be in
        # flight.
        found.acknowledge(*((begin, end, ACCEPT) for begin, end, _ in first))
        yield found
    finally:
        found.close()


def throughput(port: int, members: int, seconds: float) -> dict[str, float]:
    """Records fetched and accepted per second, until time is up or there are no more."""

    def consume(each: ShareMember) -> tuple[int, float]:
        """The number of accepted records, and the time of the last one."""
        done, at_s = 0, time.monotonic()
        given: list[tuple[int, int, int]] = []
        while at_s < until_s:
            taken = each.acquired(*given, most=EACH)
            if not taken and not given:
                break
            at_s = time.monotonic()
            done += sum(last - first + 1 for first, last, _ in given)
            given = [(first, last, ACCEPT) for first, last, _ in taken]
        return done, at_s

    with filled(port) as name, ExitStack() as stack, ThreadPoolExecutor(members) as pool:
        people = [stack.enter_context(member(port, name, f"m{n}")) for n in range(members)]
        began_s = time.monotonic()
        until_s = began_s + seconds
        found = list(pool.map(consume, people))
        return {
            "records/s": sum(done for done, _ in found) / (max(at_s for _, at_s in found) - began_s)
        }


def acknowledging(port: int, seconds: float) -> dict[str, float]:
    """Latency of acknowledging one record at a time."""
    with filled(port) as name, member(port, name, "m") as each:
        took_ms: list[float] = []
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            ((first, last, _),) = each.acquired(most=1, share_acquire_mode=1, wait_ms=5000)
            began_s = time.perf_counter()
            reply = each.acknowledge((first, last, ACCEPT))
            took_ms.append((time.perf_counter() - began_s) * 1000)
            assert reply.responses[0].partitions[0].error_code == 0, reply
        took_ms.sort()
        return {"p50 ms": percentile(took_ms, 0.5), "p99 ms": percentile(took_ms, 0.99)}


def locks_kb() -> float:
    """Memory of 2,000 locks that cannot be merged: each record has its own member and state."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    limits, partition = ShareLimits(), SharePartition(0)
    for offset in range(LOCKS):
        partition.acquire(
            Acquisition(f"m{offset}", 1, 1, is_strict=True),
            [FetchedBatch(offset, offset)],
            limits,
            0,
        )
    odd = [Acknowledgement(n, n, AcknowledgeType.RENEW) for n in range(1, LOCKS, 2)]
    for each in odd:
        partition.acknowledge(f"m{each.first}", [each], limits, 0)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert partition.held == LOCKS
    return (after - before) / 1024


def lateness(port: int) -> list[tuple[str, float, str]]:
    """How late a record is redelivered: after one, two and three releases, and after
    its lock expires.
    """
    found = []
    with topic(port, f"bench-backoff-{next(_numbers)}") as name:
        with WireLink(f"127.0.0.1:{port}") as link:
            configure_group(
                link,
                name,
                {
                    "share.auto.offset.reset": "earliest",
                    "share.record.lock.duration.ms": "15000",
                    "penstock.share.redelivery.backoff.ms": "1000",
                },
            )
            produce_records(link, name, [(None, VALUE)])
        each = ShareMember(f"127.0.0.1:{port}", name, "m", name)
        wait_until(lambda: each.join().assignment is not None, 60, "an assignment")
        first = each.acquired(wait_ms=5000)
        assert first == [(0, 0, 1)], first
        for pause_s in (1, 2, 4):
            began_s = time.perf_counter()
            each.acknowledge((0, 0, RELEASE))
            again = each.acquired(wait_ms=20_000)
            late_ms = (time.perf_counter() - began_s - pause_s) * 1000
            assert len(again) == 1, again
            found.append((f"late after a back-off of {pause_s} s, ms", late_ms, LATE_MS))
        began_s = time.perf_counter()
        again = []
        while not again and time.perf_counter() < began_s + 60:
            again = each.acquired(wait_ms=10_000)
        late_ms = (time.perf_counter() - began_s - 15 - 8) * 1000
        assert len(again) == 1, again
        found.append(("late after a lock of 15 s and a back-off of 8 s, ms", late_ms, LATE_MS))
        each.close()
    return found


def measure(subject: Subject, args: argparse.Namespace, report: Report) -> None:
    seconds = min(args.seconds, 1.0) if args.quick else args.seconds
    for members in (1, MEMBERS):
        found = throughput(subject.port, members, seconds)
        report.add(f"{members} accept by batches", subject.name, found, {"records/s": ">= 1.0"})
    found = acknowledging(subject.port, seconds)
    report.add("1 accepts one by one", subject.name, found, {"p99 ms": "<= 1.0"})


def main(argv: list[str]) -> None:
    try:
        run(arguments(argv))
    except (LoadError, PeerError, NotInstalledError) as error:
        sys.exit(f"bench: {error}")


def run(args: argparse.Namespace) -> None:
    subjects = [kind for kind in (Penstock, Kafka) if args.only in (None, kind.__name__.lower())]
    rounds = 1 if args.quick else args.rounds
    described, report = about(), Report()
    figures: list[tuple[str, float, str]] = []
    with ExitStack() as stack:
        stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-"))
        running = [kind(stack) for kind in subjects]
        for number in range(rounds):
            for subject in running if number % 2 == 0 else running[::-1]:
                measure(subject, args, report)
        for subject in running:
            if isinstance(subject, Penstock):
                figures += lateness(subject.port)
    figures.append((f"{LOCKS:,} locks apart, KB", locks_kb(), ""))
    print(report.text())
    for name, value, aim in figures:
        print(f"{name}: {value:.1f} {aim}")
    report.keep(args.out, about=described, rounds=rounds, figures=figures)
