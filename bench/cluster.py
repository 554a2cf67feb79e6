"""Three brokers, RF 3, acks=all: Penstock on ZooKeeper beside Apache Kafka in KRaft mode.

Clients are librdkafka's, the same for both, on the same cores as the brokers. Both clusters run
all the time and are measured in turns, so that a busy machine is busy for both.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Event

from bench.cluster_falls import Fall, gap_s, killed, paused, shut_down
from bench.cluster_load import Writing, end_to_end, many_partitions
from bench.cluster_subject import Subject
from bench.process import resident_mb
from bench.report import NAMES, Report

from peers.process import PeerError

AIMS = {"MB/s": ">= 1", "CPU s per GB": "<= 0.7", "p99 ms": "<= 1"}
"""Aims for the ratio to Kafka's figure."""

FALLS: dict[str, tuple[Fall, bool, str]] = {
    "leader killed": (killed, False, "<= 2 s"),
    "leader that is controller killed": (killed, True, "<= 2 s"),
    "leader shut down": (shut_down, False, "<= 0.5 s"),
    "leader that is controller shut down": (shut_down, True, "<= 0.5 s"),
    "leader paused": (paused, False, "<= 7 s"),
    "leader that is controller paused": (paused, True, "<= 7 s"),
}
"""By name: the event, whether it hits the controller, and the aim. The aim of a pause is the
session timeout and one second.
"""

NO_WRITES = "s without writes"
PARTITIONS = 1000
SETTLE_S = 2


class Bench:
    """The clusters, and two tables of their figures."""

    def __init__(self, subjects: Sequence[Subject], args: argparse.Namespace) -> None:
        self._subjects, self._args = subjects, args
        self.load, self.events = Report(), Report()

    def run(self, parts: Sequence[str]) -> list[str]:
        """Returns the failures; what was measured before a failure stays in the tables."""
        failed = []
        self.starts()
        for name in parts:
            try:
                PARTS[name](self)
            except (PeerError, TimeoutError) as error:
                failed.append(f"bench: {name}: {error}")
        return failed

    def starts(self) -> None:
        Event().wait(SETTLE_S)
        for each in self._subjects:
            self._note(each, "start, with ZooKeeper", "s", each.start_s, "<= 5 s")
            self._note(each, "idle", "RSS MB", resident_mb(each.pids), "<= 200 MB")

    def loads(self) -> None:
        writing = {each.name: Writing(each) for each in self._subjects}
        for each in self._subjects:
            self._warm_up(each, writing[each.name])
        for _ in range(self._args.rounds):
            for each in self._subjects:
                figures = writing[each.name].round(self._args.megabytes)
                self._add(each, "produce 1 KB records", figures)
        for _ in range(self._args.rounds):
            for each in self._subjects:
                figures = end_to_end(each, self._args.seconds)
                self._add(each, "end to end, 100 records/s", figures)

    def _warm_up(self, subject: Subject, writing: Writing) -> None:
        """Only the JVM needs time to warm up."""
        deadline_s = time.monotonic() + (self._args.warm_s if subject.name == "Kafka" else 0)
        writing.round(self._args.megabytes)
        while time.monotonic() < deadline_s:
            writing.round(self._args.megabytes)
        end_to_end(subject, 2)

    def falls(self) -> None:
        for name in FALLS:
            for _ in range(self._args.falls):
                self._fall(name)

    def partitions(self) -> None:
        for each in self._subjects:
            took_s = many_partitions(each, PARTITIONS)
            self._note(each, "1,000 partitions x 3", "s until each is written", took_s, "<= 3 s")
        for name in ("leader killed", "leader that is controller killed", "leader shut down"):
            self._fall(name, " with 1,000 partitions more")

    def _fall(self, name: str, more: str = "") -> None:
        fall, is_controller, aim = FALLS[name]
        for each in self._subjects:
            took_s = gap_s(each, fall, is_controller=is_controller)
            self._note(each, name + more, NO_WRITES, took_s, aim)

    def _note(self, subject: Subject, what: str, figure: str, value: float, aim: str) -> None:
        self.events.add(what, subject.name, {figure: value}, {figure: aim})
        print(f"{subject.name}: {what}: {value:.2f} {figure}", file=sys.stderr)

    def _add(self, subject: Subject, what: str, figures: dict[str, float]) -> None:
        self.load.add(what, subject.name, figures, AIMS)
        reported = ", ".join(f"{value:.2f} {figure}" for figure, value in figures.items())
        print(f"{subject.name}: {what}: {reported}", file=sys.stderr)


PARTS: dict[str, Callable[[Bench], None]] = {
    "load": Bench.loads,
    "falls": Bench.falls,
    "partitions": Bench.partitions,
}


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench cluster", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--only", choices=["penstock", "kafka"])
    parser.add_argument("--rounds", type=int, default=3, help="of produce, and of end to end")
    parser.add_argument("--megabytes", type=int, default=300, help="of each round of produce")
    parser.add_argument("--seconds", type=float, default=10, help="of each end-to-end round")
    parser.add_argument("--warm-s", type=float, default=45, help="of load before Kafka is measured")
    parser.add_argument("--falls", type=int, default=3, help="of each kind")
    parser.add_argument("--out", type=Path, help="write the figures there as JSON")
    args = parser.parse_args(argv)
    if unknown := set(args.parts) - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    names = [name for name in NAMES if args.only in (None, name.lower())]
    try:
        with ExitStack() as stack:
            bench = Bench([Subject(name, stack) for name in names], args)
            failed = bench.run(args.parts or list(PARTS))
    except PeerError as error:
        sys.exit(f"bench: {error}")
    print(*(each.text() for each in (bench.load, bench.events) if each.rows), sep="\n\n")
    if args.out:
        tables = {"load": bench.load.jsonable(), "events": bench.events.jsonable()}
        args.out.write_text(json.dumps(tables, indent=1) + "\n")
    if failed:
        sys.exit("\n".join(failed))
