"""What more workers cost: python -m bench workers [options]

Each worker is pinned to a core with the client that loads it. CPU is that of all processes together
(workers, the owner of the metadata, the supervisor), divided by all requests. It is measured with
the workers loaded in turn, each with a core to itself: if it stays the same, W workers on W free
cores do W times as much. CPU under load on all at once is shown too, but has no aim: virtual cores
often share a real one, and clients need as much CPU as the workers.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.batch import ONE_RECORD
from bench.load.generator import Load, LoadError, load
from bench.process import cpu_s, pinned
from bench.report import aligned, rounded
from bench.topic import CREATE_TOPICS, TIMEOUT_S, ask, delete, end_offsets

import penstock
from peers.process import PeerError, Process, wait_until
from penstock.broker.startup.state_file import BrokerState, read_state
from penstock.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

READY = re.compile(r"^ready \S+:(\d+)$", re.MULTILINE)


@dataclass(slots=True)
class Figures:
    """Samples for one number of workers."""

    ready_s: list[float] = field(default_factory=list)
    ready_cpu_s: list[float] = field(default_factory=list)
    """CPU of all processes until they are ready: on a busy machine more telling than the time."""
    cpu_us: list[float] = field(default_factory=list)
    together_us: list[float] = field(default_factory=list)
    requests_s: list[float] = field(default_factory=list)
    back_s: list[float] = field(default_factory=list)
    own_mb: float = 0.0
    """A worker's proportional set size (PSS): shared memory is divided among its processes."""
    resident_mb: float = 0.0


class Machine:
    """One broker process, or several workers."""

    def __init__(self, workers: int, stack: ExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        self._directory = folder / "data"
        serve = ["-m", "penstock", "serve", "--port", "0", "--dir", str(self._directory)]
        python = ["env", f"PYTHONPATH={Path(penstock.__file__).parents[1]}", sys.executable]
        self._process = Process("Penstock", [*python, *serve, "--workers", str(workers)], folder)
        stack.callback(self._process.stop)
        self._starts = 0

    def start(self) -> float:
        """Starts it; returns the seconds until it is ready."""
        self._process.stop()
        self._starts += 1
        began_s = time.monotonic()
        self._process.start()
        self._process.wait_until(lambda: self._printed() == self._starts, TIMEOUT_S)
        return time.monotonic() - began_s

    def _printed(self) -> int:
        return len(READY.findall(self._process.output.read_text()))

    @property
    def state(self) -> BrokerState:
        found = read_state(self._directory)
        assert found is not None
        return found

    @property
    def pids(self) -> list[int]:
        return [self.state.pid]

    def brokers(self) -> list[tuple[int, int, int]]:
        """Id, port and pid of each broker."""
        state = self.state
        if not state.workers:
            return [(state.broker_id, _port(state.bootstrap), state.pid)]
        return [
            (each.broker_id, _port(next(iter(each.listeners.values()))), each.pid)
            for each in state.workers
        ]

    def kill_a_worker(self) -> float:
        """Returns the seconds until the worker's successor is ready."""
        before = self.state.workers[-1].pid
        began_s = time.monotonic()
        os.kill(before, 9)
        wait_until(lambda: self.state.workers[-1].pid != before, TIMEOUT_S, "the worker")
        return time.monotonic() - began_s


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def memory_mb(pid: int, kind: str) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1000


@contextmanager
def topics(brokers: Sequence[tuple[int, int, int]], number: int) -> Iterator[list[str]]:
    """One topic for each broker, with its only replica there."""
    names = [f"bench-{number}-{broker}" for broker, _, _ in brokers]
    for name, (broker, port, _) in zip(names, brokers, strict=True):
        wanted = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[broker])],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_S * 1000)
        (made,) = ask(port, CREATE_TOPICS, 5, request, CreateTopicsResponse).topics
        if made.error_code:
            raise PeerError(f"{name} was not created: {made.error_code} {made.error_message}")
        _wait_until_served(port, name)
    try:
        yield names
    finally:
        for name in names:
            delete(brokers[0][1], name)


def _wait_until_served(port: int, name: str) -> None:
    wait_until(lambda: end_offsets(port, name, 1) is not None, TIMEOUT_S, name)


def measure(machine: Machine, figures: Figures, number: int, args: argparse.Namespace) -> None:
    brokers = machine.brokers()
    cores = sorted(os.sched_getaffinity(0))[: args.cores]
    with (
        tempfile.TemporaryDirectory() as folder,
        topics(brokers, number) as names,
        ThreadPoolExecutor(len(brokers)) as clients,
    ):
        batch = ONE_RECORD.file(Path(folder))

        def loaded(index: int) -> Load:
            _, port, pid = brokers[index]
            core = {cores[index % len(cores)]}
            with pinned([pid], core, core):  # pins this thread and the client it starts, too
                return load(
                    "produce",
                    port,
                    names[index],
                    batch=batch,
                    connections=args.connections,
                    in_flight=args.in_flight,
                    seconds=args.seconds,
                )

        every = range(len(brokers))
        before_s = cpu_s(machine.pids)
        in_turn = [loaded(index) for index in every]
        between_s = cpu_s(machine.pids)
        together = list(clients.map(loaded, every))
        after_s = cpu_s(machine.pids)
    figures.cpu_us.append((between_s - before_s) / requests(in_turn) * 1e6)
    figures.together_us.append((after_s - between_s) / requests(together) * 1e6)
    figures.requests_s.append(sum(each.requests / each.seconds for each in together))


def requests(done: Sequence[Load]) -> int:
    return sum(each.requests for each in done)


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench workers")
    parser.add_argument("--workers", default="1,2,4", help="the numbers to compare")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--connections", type=int, default=1, help="to each worker")
    parser.add_argument("--in-flight", type=int, default=5)
    parser.add_argument("--cores", type=int, default=256, help="use so many cores at most")
    return parser.parse_args(argv)


def main(argv: list[str]) -> None:
    args = arguments(argv)
    numbers = [int(each) for each in args.workers.split(",")]
    try:
        found = run(numbers, args)
    except (LoadError, PeerError) as error:
        sys.exit(f"bench: {error}")
    print(table(found))


def run(numbers: list[int], args: argparse.Namespace) -> dict[int, Figures]:
    found = {number: Figures() for number in numbers}
    with ExitStack() as stack:
        machines = {number: Machine(number, stack) for number in numbers}
        for number, machine in machines.items():
            for _ in range(min(args.rounds, 3)):
                found[number].ready_s.append(machine.start())
                found[number].ready_cpu_s.append(cpu_s(machine.pids))
            time.sleep(1)
            pids = [pid for _, _, pid in machine.brokers()]
            found[number].own_mb = median(memory_mb(pid, "Pss") for pid in pids)
            found[number].resident_mb = median(memory_mb(pid, "Rss") for pid in pids)
        for round_number in range(args.rounds + 1):
            for number, machine in machines.items():
                figures = found[number] if round_number else Figures()  # the first round warms up
                measure(machine, figures, round_number, args)
        for number, machine in machines.items():
            if number > 1:
                found[number].back_s.append(machine.kill_a_worker())
    return found


def table(found: dict[int, Figures]) -> str:
    base = next(iter(found.values()))
    head = ["workers", "", "CPU us/request", "of the first", "together", "requests/s"]
    head += ["ready s", "of CPU", "back s", "PSS MB each", "RSS MB each"]
    rows = [
        (
            f"{number}",
            "",
            rounded(median(each.cpu_us)),
            f"{median(each.cpu_us) / median(base.cpu_us):.2f}",
            rounded(median(each.together_us)),
            rounded(median(each.requests_s)),
            rounded(median(each.ready_s)),
            rounded(median(each.ready_cpu_s)),
            rounded(median(each.back_s)) if each.back_s else "-",
            rounded(each.own_mb),
            rounded(each.resident_mb),
        )
        for number, each in found.items()
    ]
    return aligned([head, *rows])
