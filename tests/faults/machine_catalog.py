"""Faults of machines (disks, clocks, limits), and moves of replicas; as in faults/catalog.py."""

import json
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.catalog import SILENT_S, SOME, Fault, follower, leader
from faults.interposed import MachineCluster
from faults.load import PARTITIONS, Load
from faults.stage import BROKERS, Stage

HOUR_S = 3600
SLOW_US = 30_000
"""Like a disk that seeks three times for each write."""


def _machines(stage: Stage) -> MachineCluster:
    assert isinstance(stage.brokers, MachineCluster)
    return stage.brokers


def sync_fails(stage: Stage, load: Load) -> None:
    """The kernel could not write and dropped the pages: the broker must not acknowledge any
    more.
    """
    victim, machines = leader(stage), _machines(stage)
    with machines.failing_sync(victim):
        stage.wait_until_led_elsewhere(victim)
        load.wait_for_acks(SOME)
        machines.kill(victim)
    machines.start(victim)


def slow_disk(of: Callable[[Stage], int]) -> Fault:
    def fault(stage: Stage, load: Load) -> None:
        with _machines(stage).slow_disk(of(stage), SLOW_US):
            threading.Event().wait(SILENT_S)
            load.wait_for_acks(SOME)

    return fault


def clock_jumps(of: Callable[[Stage], int], seconds: int) -> Fault:
    """The clock jumps, and later jumps back."""

    def fault(stage: Stage, load: Load) -> None:
        with _machines(stage).other_time(of(stage), seconds):
            threading.Event().wait(SILENT_S)
            load.wait_for_acks(SOME)
        load.wait_for_acks(SOME)

    return fault


@contextmanager
def _limited(pid: int, what: int, most: int) -> Iterator[None]:
    before = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (most, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, what, before)


def few_files(stage: Stage, load: Load) -> None:
    """No more file can be opened, as if another program of the user had them all."""
    pid = stage.brokers.pids[leader(stage)]
    open_now = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    with _limited(pid, resource.RLIMIT_NOFILE, open_now):
        threading.Event().wait(SILENT_S)
    load.wait_for_acks(SOME)


def moved(stage: Stage, load: Load) -> None:
    """One replica of each partition is removed, added again and copies everything, while a broker
    is killed.
    """
    plan = Path(_machines(stage).folder) / "plan.json"
    for factor in (BROKERS - 1, BROKERS):
        moves = [
            {
                "topic": stage.topic,
                "partition": partition,
                "replicas": [(partition + each) % BROKERS for each in range(factor)],
            }
            for partition in range(PARTITIONS)
        ]
        plan.write_text(json.dumps({"version": 1, "partitions": moves}), encoding="utf-8")
        words = [sys.executable, "-m", "penstock", "reassign", "run", str(plan), "--timeout", "60"]
        with subprocess.Popen([*words, "-b", stage.brokers.bootstrap]) as running:
            if factor == BROKERS:
                stage.wait_until_assigned(factor)
                victim = follower(stage)
                stage.brokers.kill(victim)
                load.wait_for_acks(SOME)
                stage.brokers.start(victim)
            assert running.wait(120) == 0, "the moves did not end"


MACHINES: dict[str, Fault] = {
    "fsync fails": sync_fails,
    "leader's disk slow": slow_disk(leader),
    "follower's disk slow": slow_disk(follower),
    "leader's clock an hour ahead": clock_jumps(leader, HOUR_S),
    "leader's clock an hour back": clock_jumps(leader, -HOUR_S),
    "no more files": few_files,
    "replicas moved": moved,
}
