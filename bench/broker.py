"""Penstock beside Apache Kafka under the same load: python -m bench broker [options]

Rounds are interleaved, figures are medians. CPU is the broker's, in all its threads and children,
with broker and client on one core: on idle virtual cores wake-ups would dominate.
"""

import argparse
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.disk import read_from_disk, sequential_and_random
from bench.interpreter import about
from bench.load.generator import LoadError
from bench.points import measure_points, points
from bench.report import Report
from bench.subject import Kafka, Penstock, Subject, start_to_ready
from bench.workload import END_TO_END, WORKLOADS, Bench, Workload
from bench.zero_copy import text, zero_copy

from peers.jars import NotInstalledError
from peers.process import PeerError

WARM_S = {"Kafka": 45.0, "Penstock": 5.0}
"""A JIT needs longer to warm up; Penstock builds its codecs at first use."""


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench broker")
    parser.add_argument("--only", choices=("kafka", "penstock"), help="run one broker alone")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--select", default="", help="workloads whose name holds this text")
    parser.add_argument("--points", action="store_true", help="also batch size, partitions, ...")
    parser.add_argument(
        "--cores",
        choices=("one", "apart", "any"),
        default="one",
        help="broker and client on one core, on one each, or wherever the kernel puts them",
    )
    parser.add_argument("--quick", action="store_true", help="hardly warm, one short round")
    parser.add_argument("--out", type=Path, help="write the figures here too, as JSON")
    return parser.parse_args(argv)


def cores(choice: str) -> tuple[set[int], set[int]]:
    """The cores of the broker, and those of the client."""
    every = sorted(os.sched_getaffinity(0))
    match choice:
        case "one":
            return {every[0]}, {every[0]}
        case "apart":
            return {every[0]}, {every[-1]}
        case _:
            return set(every), set(every)


START_AIMS = {"s": "<= 0.15", "RSS MB": "<= 0.12"}


def aims(workload: Workload) -> dict[str, str]:
    if workload is END_TO_END:
        return {"p50 us": "<= 0.9", "p99 us": "<= 0.9"}
    if workload.cpu_aim is None:
        return {}
    cpu = f"<= {workload.cpu_aim}"
    return {
        "CPU us per request": cpu,
        "CPU s per GB": cpu,
        "requests/s": ">= 1",
        "MB/s": ">= 1",
        "p99 us": "<= 1",
    }


def add_starts(report: Report, subject: Subject, starts: int) -> None:
    took_s, idle_mb = start_to_ready(subject, starts)
    for each_s in took_s:
        report.add("start to ready", subject.name, {"s": each_s}, START_AIMS)
    report.add("idle", subject.name, {"RSS MB": idle_mb}, START_AIMS)


def measure(benches: list[Bench], workloads: list[Workload], rounds: int, report: Report) -> None:
    for number in range(rounds):
        # The broker that goes first alternates, too.
        for workload in workloads:
            for bench in benches if number % 2 == 0 else benches[::-1]:
                figures = bench.measure(workload).figures()
                report.add(workload.name, bench.subject.name, figures, aims(workload))


def main(argv: list[str]) -> None:
    try:
        run(arguments(argv))
    except (LoadError, PeerError, NotInstalledError) as error:
        sys.exit(f"bench: {error}")


def run(args: argparse.Namespace) -> None:
    described, rounds = about(), 1 if args.quick else args.rounds
    seconds = min(args.seconds, 0.5) if args.quick else args.seconds
    subjects = [kind for kind in (Penstock, Kafka) if args.only in (None, kind.__name__.lower())]
    workloads = [each for each in WORKLOADS if args.select in each.name]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        benches = []
        starts = Report()
        for kind in subjects:
            subject = kind(stack)
            add_starts(starts, subject, 1 if args.quick else 3)
            bench = Bench(subject, folder, stack, cores(args.cores), seconds)
            also = points() if args.points else ()
            bench.warm(
                [*workloads, END_TO_END, *also], WARM_S[subject.name] * (0.1 if args.quick else 1)
            )
            benches.append(bench)

        load, latency = Report(), Report()
        measure(benches, workloads, rounds, load)
        print(load.text(), starts.text(), sep="\n\n", end="\n\n")
        measure(benches, [END_TO_END], rounds, latency)
        print(latency.text())
        tables = {"load": load, "start": starts, "latency": latency}
        figures: dict[str, object] = {"about": described, "rounds": rounds}
        if args.points:
            tables["points"] = measure_points(benches, min(rounds, 3))
            figures["zero copy"] = ways = zero_copy(rounds)
            figures["disk"] = disk = [sequential_and_random(), *map(read_from_disk, benches)]
            print("", tables["points"].text(), "", text(ways), "", *disk, sep="\n")
        if args.out:
            figures |= {name: table.jsonable() for name, table in tables.items()}
            args.out.write_text(json.dumps(figures, indent=1) + "\n")
