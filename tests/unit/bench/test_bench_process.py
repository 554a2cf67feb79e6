"""CPU, memory and pinning of the processes that benchmarks measure."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from bench.process import cpu_s, family, pinned, resident_mb, threads

BUSY_CHILD = """
import subprocess, sys, time
idle = "import time; print(1, flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", idle])
while time.process_time() < 0.2: pass
print("done", flush=True)
sys.stdin.read()
child.kill()
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", BUSY_CHILD]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert {process.stdout.readline(), process.stdout.readline()} == {"1\n", "done\n"}
        yield process


def test_cpu_and_memory_of_a_process_and_its_children_are_seen(
    parent: subprocess.Popen[str],
) -> None:
    assert len(family([parent.pid])) == 2
    assert cpu_s([parent.pid]) >= 0.15  # the kernel rounds CPU time down to its ticks
    assert resident_mb([parent.pid]) > resident_mb(family([parent.pid])[1:]) > 0


def test_every_thread_is_pinned_and_released_again(parent: subprocess.Popen[str]) -> None:
    before = os.sched_getaffinity(0)
    core = {min(before)}
    with pinned([parent.pid], core, core):
        assert all(os.sched_getaffinity(each) == core for each in threads([parent.pid]))
        assert os.sched_getaffinity(0) == core
    assert all(os.sched_getaffinity(each) == before for each in threads([parent.pid]))
    assert os.sched_getaffinity(0) == before


def test_an_ended_process_has_no_cost() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert cpu_s([process.pid]) == 0
