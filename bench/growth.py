"""What a broker costs as it grows: python -m bench growth [options]

The axes are partitions, connections, groups, record size and brokers. Each axis has a fresh broker
that grows from point to point. An axis ends early when its time is used up, so a slow broker has
fewer points. CPU is that of all the broker's processes; memory is resident memory.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.batch import ONE_RECORD, Batch
from bench.crowd import Crowd, crowd, framed, read
from bench.interpreter import about
from bench.load.generator import load
from bench.process import cpu_s, resident_mb
from bench.report import aligned, rounded
from bench.subject import Kafka, Penstock, Subject
from bench.topic import create, topic

from peers.kafka import KafkaCluster
from peers.penstock_cluster import PenstockCluster
from peers.process import PeerError, wait_until
from peers.zookeeper import ZooKeeper
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

SIZES = {
    "partitions": (100, 1_000, 5_000),
    "connections": (10, 100, 500, 2_000),
    "groups": (10, 200, 2_000),
    "record bytes": (100, 1_000, 10_000, 100_000, 1_000_000),
    "brokers": (1, 3, 5),
}
TOPIC_PARTITIONS = 500
WARM_S = {"Kafka": 30.0, "Penstock": 1.0}
"""A JIT needs longer to warm up."""
IDLE_S = 3.0
SETTLE_S = 2.0
AXIS_S = 90.0
WAIT_S = 60
Figures = dict[str, float]
Points = Iterator[tuple[int, Figures]]


def resting(pids: list[int]) -> Figures:
    """CPU and memory of a broker without requests."""
    time.sleep(SETTLE_S)
    before_s = cpu_s(pids)
    time.sleep(IDLE_S)
    return {
        "idle CPU ms/s": (cpu_s(pids) - before_s) / IDLE_S * 1000,
        "memory MB": resident_mb(pids),
    }


def loaded(
    subject: Subject, name: str, file: Path, seconds: float, connections: int = 1
) -> Figures:
    before_s = cpu_s(subject.pids)
    done = load("produce", subject.port, name, batch=file, seconds=seconds, connections=connections)
    used_s = cpu_s(subject.pids) - before_s
    return {
        "CPU us per request": used_s / done.requests * 1e6,
        "CPU s per GB": used_s / done.bytes * 1e9,
        "MB/s": done.bytes / done.seconds / 1e6,
    }


def small(subject: Subject, folder: Path, seconds: float, connections: int = 1) -> Figures:
    """CPU of a produce request with one record."""
    with topic(subject.port, f"small-{time.monotonic_ns()}") as name:
        found = loaded(subject, name, ONE_RECORD.file(folder), seconds, connections)
    return {"CPU us per request": found["CPU us per request"]}


def partitions(subject: Subject, folder: Path, seconds: float) -> Points:
    held = 0
    for size in SIZES["partitions"]:
        while held < size:
            more = min(TOPIC_PARTITIONS, size - held)
            create(subject.port, f"many-{held}", more, {})
            held += more
        yield size, resting(subject.pids) | small(subject, folder, seconds)


def connections(subject: Subject, folder: Path, seconds: float) -> Points:
    for size in SIZES["connections"]:
        with crowd(subject.port, size):
            found = resting(subject.pids)
        yield size, found | small(subject, folder, seconds, size)


def groups(subject: Subject, folder: Path, seconds: float) -> Points:
    """Groups with a committed offset and without members."""
    with crowd(subject.port, 1) as one, topic(subject.port, "read") as name:
        one.ask({0: framed(FindCoordinatorRequest(coordinator_keys=["group-0"]), 4)})
        known = 0
        for size in SIZES["groups"]:
            for number in range(known, size):
                wait_until(lambda at=number: commits(one, at, name), WAIT_S, "a coordinator")  # type: ignore[misc]
            known = size
            yield size, resting(subject.pids) | small(subject, folder, seconds)


def commits(one: Crowd, number: int, name: str) -> bool:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(
        group_id=f"group-{number}", topics=[OffsetCommitRequestTopic(name=name, partitions=[part])]
    )
    answer = read(one.ask({0: framed(request, 8)})[0], OffsetCommitRequest, OffsetCommitResponse, 8)
    return answer.topics[0].partitions[0].error_code == 0


def record_bytes(subject: Subject, folder: Path, seconds: float) -> Points:
    """Each request has one record."""
    for size in SIZES["record bytes"]:
        with topic(subject.port, f"records-{size}") as name:
            yield size, loaded(subject, name, Batch(0, size).file(folder), seconds)


ALONE: dict[str, Callable[[Subject, Path, float], Points]] = {
    "partitions": partitions,
    "connections": connections,
    "groups": groups,
    "record bytes": record_bytes,
}


def brokers(kind: str) -> Points:
    """An idle cluster, per broker; without Penstock's ZooKeeper, whose cost does not grow."""
    for size in SIZES["brokers"]:
        with ExitStack() as stack:
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-"))
            )
            if kind == "Penstock":
                store = stack.enter_context(ZooKeeper())
                made: PenstockCluster | KafkaCluster = PenstockCluster(
                    store.connect, size, folder=folder
                )
            else:
                made = KafkaCluster(size, profile="bench", folder=folder)
            found = resting(list(stack.enter_context(made).pids.values()))
        yield size, {name: value / size for name, value in found.items()}


def axis(name: str, kind: type[Penstock | Kafka], folder: Path, seconds: float) -> Points:
    with ExitStack() as stack:
        if name == "brokers":
            points = brokers(kind.name)
        else:
            subject = kind(stack)
            small(subject, folder, WARM_S[kind.name], connections=5)
            points = ALONE[name](subject, folder, seconds)
        ends_s = time.monotonic() + AXIS_S
        try:
            for point in points:
                yield point
                if time.monotonic() > ends_s:
                    return
        except PeerError as error:
            print(f"{kind.name}, {name}: no further points: {error}")


def text(points: list[dict[str, object]]) -> str:
    lines = [("axis", "broker", "size", "figure", "value")]
    for each in points:
        figures = each["figures"]
        assert isinstance(figures, dict)
        lines += [
            (str(each["axis"]), str(each["subject"]), f"{each['size']:,}", name, rounded(value))
            for name, value in figures.items()
        ]
    return aligned(lines)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench growth")
    parser.add_argument("--only", choices=("kafka", "penstock"), help="run one broker alone")
    parser.add_argument("--select", default="", help="axes whose name holds this text")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--out", type=Path, help="write the figures here too, as JSON")
    args = parser.parse_args(argv)
    kinds: list[type[Penstock | Kafka]] = [Penstock, Kafka]
    described, found = about(), []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        for name in SIZES:
            for kind in kinds:
                if args.select not in name or args.only not in (None, kind.name.lower()):
                    continue
                for size, figures in axis(name, kind, Path(folder), args.seconds):
                    point = {"axis": name, "subject": kind.name, "size": size, "figures": figures}
                    found.append(point)
    print(text(found))
    if args.out:
        args.out.write_text(json.dumps({"about": described, "points": found}, indent=1) + "\n")
