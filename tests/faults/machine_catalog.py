"""Faults of machines (disks, clocks, limits), and moves of replicas; as in faults/catalog.py."""

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from faults.catalog import SILENT_S, SOME, Fault, follower, leader
from faults.interposed import MachineCluster
from faults.load import PARTITIONS, Load
from faults.stage import BROKERS, Stage
from penstock.log.log_dir_owner import BOOT_ID
from penstock.record.batch import LENGTH_END

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


def disk_full(stage: Stage, load: Load) -> None:
    """A write stops half-way, and what has been written of the batch must not count."""
    victim, machines = leader(stage), _machines(stage)
    with machines.full_disk(victim):
        stage.wait_until_led_elsewhere(victim)
        load.wait_for_acks(SOME)
        machines.kill(victim)
    machines.start(victim)


def power_lost(of: Callable[[Stage], int]) -> Fault:
    """A machine loses power: of each log only what was synced comes back, up to its recovery
    point.
    """

    def fault(stage: Stage, load: Load) -> None:
        victim = of(stage)
        stage.brokers.kill(victim)
        folder = stage.brokers.data_dir(victim)
        synced = recovery_points(folder)
        for directory in folder.iterdir():
            if directory.is_dir():
                lose_after(directory, synced.get(directory.name, 0))
        (folder / BOOT_ID).write_text("of another boot", encoding="ascii")
        load.wait_for_acks(SOME)
        stage.brokers.start(victim)

    return fault


def recovery_points(folder: Path) -> dict[str, int]:
    """The offsets up to which the logs of this directory were synced, by partition."""
    lines = (folder / "recovery-point-offset-checkpoint").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines[2:]]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in words}


def lose_after(directory: Path, offset: int) -> None:
    """Cuts a log before its first batch at or after this offset. Names of later segments are not
    synced either.
    """
    is_lost = False
    for file in sorted(directory.glob("*.log")):
        if is_lost:
            file.unlink()
            continue
        data, position = file.read_bytes(), 0
        while position + LENGTH_END <= len(data):
            if int.from_bytes(data[position : position + 8]) >= offset:
                is_lost = True
                break
            position += LENGTH_END + int.from_bytes(data[position + 8 : position + LENGTH_END])
        os.truncate(file, min(position, len(data)))


def little_memory(stage: Stage, load: Load) -> None:
    """The broker gets no more memory. It may die of that; then it is started again."""
    victim = leader(stage)
    pid = stage.brokers.pids[victim]
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0])
    with _limited(pid, resource.RLIMIT_AS, pages * resource.getpagesize()):
        threading.Event().wait(SILENT_S)
        if victim not in stage.brokers.running:
            stage.brokers.start(victim)
            return
    load.wait_for_acks(SOME)


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
        with suppress(ProcessLookupError):
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
    "disk full": disk_full,
    "follower loses power": power_lost(follower),
    "leader loses power": power_lost(leader),
    "no more memory": little_memory,
    "leader's disk slow": slow_disk(leader),
    "follower's disk slow": slow_disk(follower),
    "leader's clock an hour ahead": clock_jumps(leader, HOUR_S),
    "leader's clock an hour back": clock_jumps(leader, -HOUR_S),
    "no more files": few_files,
    "replicas moved": moved,
}
