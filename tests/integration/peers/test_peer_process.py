"""Processes that tests start: how they end, and which ports they get."""

import sys
from functools import partial
from pathlib import Path

import pytest

import peers
from peers.process import PeerError, Process, free_ports, wait_until

STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
signal.pause()
"""


def python(folder: Path, program: str) -> Process:
    return Process("the peer", [sys.executable, "-c", program], folder)


def was_ready(process: Process, times: int) -> bool:
    return process.output.read_bytes().count(b"ready") == times


def test_a_process_that_ends_early_shows_its_last_output(tmp_path: Path) -> None:
    process = python(tmp_path, "print('no port is free')")
    process.start()
    with pytest.raises(PeerError, match="the peer ended early\nno port is free"):
        process.wait_until(lambda: False, timeout_s=20)


def test_a_process_that_is_late_shows_its_last_output(tmp_path: Path) -> None:
    process = python(tmp_path, STUBBORN)
    process.start()
    try:
        process.wait_until(partial(was_ready, process, 1), timeout_s=20)
        with pytest.raises(PeerError, match="waited 0 s for the peer to become ready\nready"):
            process.wait_until(lambda: False, timeout_s=0)
    finally:
        process.kill()


def test_a_process_that_ignores_sigterm_is_killed_and_can_start_again(tmp_path: Path) -> None:
    process = python(tmp_path, STUBBORN)
    for starts in (1, 2):
        process.start()
        process.wait_until(partial(was_ready, process, starts), timeout_s=20)
        process.stop(timeout_s=0.1)
        assert not process.running


def test_waiting_ends_at_the_deadline() -> None:
    with pytest.raises(TimeoutError, match="waited 0 s for nothing"):
        wait_until(lambda: False, 0, "nothing")


def test_free_ports_are_distinct() -> None:
    assert len(set(free_ports(50))) == 50


def test_two_processes_never_get_the_same_free_port(tmp_path: Path) -> None:
    """There are 17,000 ports: by chance alone, some of 400 would be among 400 others."""
    path = str(Path(peers.__path__[0]).parent)
    program = (
        f"import signal, sys; sys.path.insert(0, {path!r})\n"
        "from peers.process import free_ports\n"
        "print(*free_ports(400), 'ready', flush=True); signal.pause()"
    )
    other = python(tmp_path, program)
    other.start()
    try:
        other.wait_until(partial(was_ready, other, 1), timeout_s=20)
        theirs = {int(each) for each in other.output.read_text().split()[:-1]}
        assert len(theirs) == 400
        assert not theirs & {*free_ports(400)}
    finally:
        other.kill()
