"""Consumer groups of Penstock beside Apache Kafka's: python -m bench groups [options]

Measures how long ten librdkafka members take until each has its partition, commits per second, the
CPU of a thousand quiet groups, and a producer's latency while a large group rebalances.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread

from bench.batch import ONE_RECORD
from bench.crowd import Crowd, closed_loop, crowd, paced
from bench.group_members import (
    Seat,
    commit,
    consumer_heartbeat,
    find,
    heartbeat,
    join_classic,
    join_consumer,
)
from bench.load.generator import LoadError, load
from bench.process import cpu_s
from bench.report import Report
from bench.subject import Kafka, Penstock, Subject
from bench.topic import topic
from confluent_kafka import Consumer

from peers.jars import NotInstalledError
from peers.process import PeerError

MEMBERS = 10
COMMITTERS = 50
GROUPS, EACH = 1000, 5
INTERVAL_S = 3.0
REBALANCING = 100

_numbers = count()


def fresh(what: str) -> str:
    return f"bench-{what}-{next(_numbers)}"


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench groups")
    parser.add_argument("--only", choices=("kafka", "penstock"), help="run one broker alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--select", default="", help="figures whose name holds this text")
    parser.add_argument("--quick", action="store_true", help="one short round, 100 groups")
    parser.add_argument("--out", type=Path, help="write the figures here too, as JSON")
    return parser.parse_args(argv)


def until_stable(port: int, protocol: str) -> float:
    """Seconds from the first subscription until ten members have a partition each."""
    with topic(port, fresh("stable"), MEMBERS) as name:
        members = [
            Consumer(
                {
                    "bootstrap.servers": f"127.0.0.1:{port}",
                    "group.id": name,
                    "group.protocol": protocol,
                    "enable.auto.commit": False,
                    "log_level": 0,
                }
            )
            for _ in range(MEMBERS)
        ]
        began_s = time.monotonic()
        for each in members:
            each.subscribe([name])
        while any(len(each.assignment()) != 1 for each in members):
            for each in members:
                each.poll(0.005)
            if time.monotonic() > began_s + 60:
                raise PeerError(f"{protocol}: ten members are not stable after a minute")
        took_s = time.monotonic() - began_s
        for each in members:
            each.close()
        return took_s


def commits(port: int, seconds: float) -> float:
    """Commits per second by fifty members of ten groups, each waiting for its answer."""
    with topic(port, fresh("commit"), COMMITTERS) as name, crowd(port, COMMITTERS) as people:
        seats = [Seat(f"{name}-{number % 10}") for number in range(COMMITTERS)]
        find(people, {seat.group for seat in seats})
        join_classic(people, seats, name)
        frames = [commit(seat, name, number) for number, seat in enumerate(seats)]
        closed_loop(people, frames, 1)
        began_s = time.monotonic()
        done = closed_loop(people, frames, seconds)
        return done / (time.monotonic() - began_s)


def quiet_groups(subject: Subject, groups: int, protocol: str, seconds: float) -> dict[str, float]:
    """CPU for the heartbeats of groups of five members, one heartbeat every three seconds each."""
    port, size = subject.port, groups * EACH
    with topic(port, fresh("quiet"), EACH) as name, crowd(port, size) as people:
        seats = [Seat(f"{name}-{number // EACH}") for number in range(size)]
        find(people, {seats[0].group})
        if protocol == "classic":
            join_classic(people, seats, name)
            frames = [heartbeat(seat) for seat in seats]
        else:
            join_consumer(people, seats, name, 1)
            frames = [consumer_heartbeat(seat) for seat in seats]
        paced(people, frames, INTERVAL_S, INTERVAL_S)
        before_s, began_s = cpu_s(subject.pids), time.monotonic()
        done = paced(people, frames, INTERVAL_S, max(seconds, 2 * INTERVAL_S))
        took_s = time.monotonic() - began_s
        cpu = cpu_s(subject.pids) - before_s
        return {"% of a core": 100 * cpu / took_s, "heartbeats/s": done / took_s}


@contextmanager
def rebalancing(people: Crowd, name: str, rounds: list[float], over_s: float) -> Iterator[None]:
    """A group of a hundred members rebalances again and again until the block ends.

    Members join over `over_s` seconds, as if told by their heartbeats, or all at once.
    """
    seats = [Seat(f"{name}-large") for _ in range(REBALANCING)]
    join_classic(people, seats, name)
    stop = Event()
    failed: list[Exception] = []

    def run() -> None:
        try:
            while not stop.is_set():
                rounds.append(join_classic(people, seats, name, b"%d" % len(rounds), over_s))
        except (PeerError, OSError) as error:
            failed.append(error)

    thread = Thread(target=run, name="rebalances")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        if failed:
            raise failed[0]


def others(port: int, folder: Path, seconds: float, over_s: float) -> dict[str, float]:
    """A lone producer's latency while a group of a hundred rebalances, and without that."""
    with topic(port, fresh("others")) as name, crowd(port, REBALANCING) as people:
        find(people, {f"{name}-large"})
        options = {"seconds": seconds, "batch": ONE_RECORD.file(folder)}
        load("produce", port, name, **options)
        alone = load("produce", port, name, **options)
        took_s: list[float] = []
        with rebalancing(people, name, took_s, over_s):
            beside = load("produce", port, name, **options)
        return {
            "p99 us alone": alone.p99_us,
            "p99 us beside it": beside.p99_us,
            "p99 beside / alone": beside.p99_us / alone.p99_us,
            "s per rebalance": sum(took_s) / max(len(took_s), 1),
        }


def measure(subject: Subject, folder: Path, args: argparse.Namespace, report: Report) -> None:
    name, port = subject.name, subject.port
    seconds = min(args.seconds, 1.0) if args.quick else args.seconds
    groups = 100 if args.quick else GROUPS

    def wanted(workload: str) -> bool:
        return args.select in workload

    for protocol in ("classic", "consumer"):
        workload = f"{MEMBERS} members, {protocol}"
        if wanted(workload):
            took_s = until_stable(port, protocol)
            report.add(workload, name, {"s until stable": took_s}, {"s until stable": "<= 0.7"})
    if wanted(f"{COMMITTERS} members commit"):
        figure = {"commits/s": commits(port, seconds)}
        report.add(f"{COMMITTERS} members commit", name, figure, {"commits/s": ">= 5000 /s"})
    for protocol in ("classic", "consumer"):
        workload = f"{groups:,} groups of {EACH}, {protocol}"
        if wanted(workload):
            found = quiet_groups(subject, groups, protocol, seconds)
            report.add(workload, name, found, {"% of a core": "<= 15 %"})
    for how, over_s in (("by heartbeats", INTERVAL_S), ("at once", 0.0)):
        workload = f"{REBALANCING} rebalance {how}"
        if wanted(workload):
            found = others(port, folder, max(seconds, 2 * over_s), over_s)
            aim = {} if not over_s else {"p99 beside / alone": "<= 2 each"}
            report.add(workload, name, found, aim)


def main(argv: list[str]) -> None:
    try:
        run(arguments(argv))
    except (LoadError, PeerError, NotInstalledError) as error:
        sys.exit(f"bench: {error}")


def run(args: argparse.Namespace) -> None:
    subjects = [kind for kind in (Penstock, Kafka) if args.only in (None, kind.__name__.lower())]
    report = Report()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        running = [kind(stack) for kind in subjects]
        for number in range(1 if args.quick else args.rounds):
            for subject in running if number % 2 == 0 else running[::-1]:
                measure(subject, folder, args, report)
        print(report.text())
    if args.out:
        args.out.write_text(json.dumps(report.jsonable(), indent=1) + "\n")
