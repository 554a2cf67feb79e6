"""The cost of a metrics page, for the broker and for others: python -m bench metrics [options]

The broker has 2,000 partitions and 500 groups that lag in four partitions each. A probe measures
response times, first alone and then while the page is read again and again.
"""

import argparse
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice

from bench.crowd import Crowd, crowd, framed
from bench.group_members import COMMIT, find
from bench.process import cpu_s
from bench.report import Report
from bench.stalls import figures, running, waits_ms
from bench.subject import Penstock
from bench.topic import create
from confluent_kafka import Producer

from penstock.broker.startup.state_file import read_state
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

TOPICS, PARTITIONS, GROUPS, EACH = 20, 100, 500, 4
RECORDS = 20
"""Records in each partition; groups have read a part of them."""

READER = "import sys, urllib.request as u\nfor _ in range(20): u.urlopen(sys.argv[1]).read()"


def fill(port: int) -> None:
    names = [f"metrics-{number}" for number in range(TOPICS)]
    for name in names:
        create(port, name, PARTITIONS, {})
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "linger.ms": 20, "log_level": 0})
    for number in range(RECORDS):
        for name in names:
            for index in range(PARTITIONS):
                producer.produce(name, b"x" * 100, partition=index)
        if producer.flush(60):
            sys.exit(f"bench: round {number} of the records was not written in a minute")


def commit_all(people: Crowd) -> None:
    places = iter_places()
    for number in range(GROUPS):
        group = f"metrics-{number}"
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for name, index in islice(places, EACH):
            offset = OffsetCommitRequestPartition(
                partition_index=index, committed_offset=number % RECORDS
            )
            topics.setdefault(name, []).append(offset)
        request = OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequestTopic(name=name, partitions=found)
                for name, found in topics.items()
            ],
        )
        people.ask({0: framed(request, COMMIT)})


def iter_places() -> Iterator[tuple[str, int]]:
    while True:
        for number in range(TOPICS):
            for index in range(PARTITIONS):
                yield f"metrics-{number}", index


def scrape(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as response:
        page: bytes = response.read()
        return page


def measured(subject: Penstock, url: str, pages: int, seconds: float, report: Report) -> None:
    name = f"{TOPICS * PARTITIONS:,} partitions, {GROUPS} groups"
    page = scrape(url)
    before_s, began_s = cpu_s(subject.pids), time.monotonic()
    for _ in range(pages):
        page = scrape(url)
    took_s, cpu = time.monotonic() - began_s, cpu_s(subject.pids) - before_s
    found = {
        "lines": float(page.count(b"\n")),
        "CPU ms a page": 1000 * cpu / pages,
        "ms a page": 1000 * took_s / pages,
    }
    report.add(name, subject.name, found)
    report.add("a probe, alone", subject.name, figures(waits_ms(subject.port, seconds)))
    # A thread of this process would hold up the probe.
    command = [sys.executable, "-c", READER, url]

    def read_on() -> None:
        subprocess.run(command, check=True)

    with running([read_on]):
        beside = figures(waits_ms(subject.port, seconds))
    report.add("a probe, beside page after page", subject.name, beside)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench metrics")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=20, help="read in each round")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each probe")
    args = parser.parse_args(argv)
    report = Report()
    with ExitStack() as stack:
        subject = Penstock(stack)
        fill(subject.port)
        with crowd(subject.port, 1) as people:
            find(people, ["metrics-0"])
            commit_all(people)
        url = f"http://{http_address(subject)}/metrics"
        for _ in range(args.rounds):
            measured(subject, url, args.pages, args.seconds, report)
        print("aim: 100 ms of CPU a page, and no answer that waits for a page")
        print(report.text())


def http_address(subject: Penstock) -> str:
    state = read_state(subject.directory)
    if state is None or state.http is None:
        sys.exit("bench: the broker serves no HTTP")
    return state.http
