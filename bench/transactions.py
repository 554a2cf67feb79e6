"""Transactions on Penstock beside Apache Kafka: python -m bench transactions [options]

franz-go writes transactions of 100 records, and copies a topic with the offsets in each
transaction. Rounds are interleaved, figures are medians, CPU is the broker's. Under full load
commits wait for each other, so only the workloads with a fixed rate show how long a single commit
takes.
"""

import argparse
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
from bench.broker import cores
from bench.interpreter import about
from bench.process import cpu_s, pinned
from bench.report import Report
from bench.subject import Kafka, Penstock, Subject
from bench.topic import topic

from clients.programs import go_program
from peers.jars import NotInstalledError
from peers.process import PeerError

SOURCES = Path(__file__).with_name("transactional")
PARTITIONS = 4
COPIED = 100_000
WARM_S = {"Kafka": 45.0, "Penstock": 5.0}
"""A JIT needs longer to warm up; Penstock builds its codecs at first use."""
AIMS = {"transactions/s": ">= 1", "records/s": ">= 1", "commit p99 us": "<= 1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    name: str
    generation: int
    producers: int = 0
    """0: copy a topic instead."""
    per_second: int = 0
    """The rate of all producers together; 0: each producer runs as fast as it can."""


WORKLOADS = (
    Workload(name="1 producer", generation=2, producers=1),
    Workload(name="10 producers", generation=2, producers=10),
    Workload(name="1 producer, first generation", generation=1, producers=1),
    Workload(name="10 producers, first generation", generation=1, producers=10),
    Workload(name="1 producer, 50 a second", generation=2, producers=1, per_second=50),
    Workload(name="10 producers, 100 a second", generation=2, producers=10, per_second=100),
    Workload(name="consume, transform, produce", generation=2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The result of one run of the program."""

    transactions: int
    records: int
    seconds: float
    p50_us: float
    p99_us: float


def program(kind: str, port: int, name: str, **options: object) -> Done:
    given = [f"{option}={value}" for option, value in options.items()]
    done = subprocess.run(
        [
            *(*go_program("transactional", SOURCES), kind, f"127.0.0.1:{port}", name),
            *(str(PARTITIONS), *given),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PeerError(f"{kind} of {name}: {done.stderr.strip()}")
    return msgspec.json.decode(done.stdout, type=Done)


class Bench:
    """Runs workloads on one subject; the topic to copy stays until the stack unwinds."""

    def __init__(self, subject: Subject, stack: ExitStack, seconds: float, where: str) -> None:
        self.subject, self._seconds, self._cores = subject, seconds, cores(where)
        self._source = stack.enter_context(topic(subject.port, "source", PARTITIONS))
        self._runs = 0
        program("fill", subject.port, self._source, records=COPIED)

    def measure(self, workload: Workload) -> dict[str, float]:
        with pinned(self.subject.pids, *self._cores):
            before_s = cpu_s(self.subject.pids)
            done = self.run(workload, self._seconds)
            spent_s = cpu_s(self.subject.pids) - before_s
        commits = {"commit p50 us": done.p50_us, "commit p99 us": done.p99_us}
        if workload.producers == 0:
            return {"records/s": done.records / done.seconds, **commits}
        rate = {"transactions/s": done.transactions / done.seconds}
        return {
            # A fixed rate is not a result.
            **({} if workload.per_second else rate),
            **commits,
            "CPU us per transaction": spent_s / done.transactions * 1e6,
        }

    def run(self, workload: Workload, seconds: float) -> Done:
        self._runs += 1
        name, port = f"run-{self._runs}", self.subject.port
        with topic(port, name, PARTITIONS):
            if workload.producers:
                return program(
                    "write",
                    port,
                    name,
                    generation=workload.generation,
                    producers=workload.producers,
                    per_second=workload.per_second,
                    milliseconds=round(seconds * 1000),
                )
            return program(
                "copy",
                port,
                self._source,
                generation=workload.generation,
                target=name,
                group=f"copy-{name}",
                records=COPIED,
            )

    def warm(self, workloads: list[Workload], for_s: float) -> None:
        for workload in workloads:
            self.run(workload, for_s / len(workloads))


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench transactions")
    parser.add_argument("--only", choices=("kafka", "penstock"), help="run one broker alone")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--select", default="", help="workloads whose name holds this text")
    parser.add_argument(
        "--cores",
        choices=("one", "apart", "any"),
        default="any",
        help="broker and client on one core, on one each, or wherever the kernel puts them",
    )
    parser.add_argument("--quick", action="store_true", help="hardly warm, one short round")
    parser.add_argument("--out", type=Path, help="write the figures here too, as JSON")
    return parser.parse_args(argv)


def main(argv: list[str]) -> None:
    try:
        run(arguments(argv))
    except (PeerError, NotInstalledError) as error:
        sys.exit(f"bench: {error}")


def run(args: argparse.Namespace) -> None:
    described, rounds = about(), 1 if args.quick else args.rounds
    seconds = min(args.seconds, 0.5) if args.quick else args.seconds
    subjects = [kind for kind in (Penstock, Kafka) if args.only in (None, kind.__name__.lower())]
    workloads = [each for each in WORKLOADS if args.select in each.name]
    report = Report()
    with ExitStack() as stack:
        benches = [Bench(kind(stack), stack, seconds, args.cores) for kind in subjects]
        for bench in benches:
            bench.warm(workloads, WARM_S[bench.subject.name] * (0.1 if args.quick else 1))
        for number in range(rounds):
            for workload in workloads:
                # The broker that goes first alternates.
                for bench in benches if number % 2 == 0 else benches[::-1]:
                    report.add(workload.name, bench.subject.name, bench.measure(workload), AIMS)
    print(report.text())
    report.keep(args.out, about=described, rounds=rounds)
