"""A paused broker resumes, whatever happens to the process that paused it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.broker.startup.state_file import BrokerState, WorkerState
from penstock.errors import ConfigError
from penstock.local.backup.pause import _is_still, paused
from penstock.process_start import process_start

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as started:
        yield started
        started.kill()


def state_of(pid: int) -> BrokerState:
    return BrokerState(pid, process_start(pid) or "", 1, "cluster", "127.0.0.1:1", {})


def test_a_process_is_paused_only_inside_the_block(process: subprocess.Popen[bytes]) -> None:
    with paused(state_of(process.pid)):
        assert _is_still(process.pid)
    assert not _is_still(process.pid)


def test_an_error_inside_the_block_resumes_the_process(process: subprocess.Popen[bytes]) -> None:
    with pytest.raises(ZeroDivisionError), paused(state_of(process.pid)):
        raise ZeroDivisionError
    assert not _is_still(process.pid)


def test_killing_the_pausing_process_resumes_the_process(process: subprocess.Popen[bytes]) -> None:
    program = (
        "import sys, time\n"
        "from penstock.local.backup.pause import paused\n"
        "from penstock.broker.startup.state_file import BrokerState\n"
        "with paused(BrokerState(int(sys.argv[1]), sys.argv[2], 1, 'c', 'b', {})):\n"
        "    print('paused', flush=True)\n"
        "    time.sleep(600)\n"
    )
    began = process_start(process.pid) or ""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(process.pid), began],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
    ) as pausing:
        assert pausing.stdout is not None
        assert pausing.stdout.readline() == b"paused\n"
        assert _is_still(process.pid)
        pausing.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while _is_still(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_does_not_pause_itself() -> None:
    with pytest.raises(ConfigError, match="its own broker"), paused(state_of(os.getpid())):
        pass


def test_a_process_that_has_ended_is_not_paused(process: subprocess.Popen[bytes]) -> None:
    state = state_of(process.pid)
    process.kill()
    process.wait()
    with pytest.raises(ConfigError, match="has just ended"), paused(state):
        pass


def test_pausing_process_1_of_a_container_is_refused_with_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel ignores SIGSTOP to process 1."""
    monkeypatch.setattr(BrokerState, "is_alive", lambda _: True)
    with pytest.raises(ConfigError, match="--init"), paused(state_of(1)):
        pass


def test_pausing_another_users_process_is_refused_with_the_reason(
    process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    with pytest.raises(ConfigError, match="another user"), paused(state_of(process.pid)):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells a process's children")
def test_only_the_supervisors_current_workers_are_paused(process: subprocess.Popen[bytes]) -> None:
    """The pid of an ended worker may belong to another program by now."""
    program = "import subprocess; subprocess.run(['sh', '-c', 'echo $$; exec sleep 600'])"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        worker = int(supervisor.stdout.readline())
        former = WorkerState(0, process.pid, 1, {})
        state = msgspec.structs.replace(state_of(supervisor.pid), workers=(former,))
        with paused(state):
            assert _is_still(supervisor.pid)
            assert _is_still(worker)
            assert not _is_still(process.pid)
        assert not _is_still(worker)
        os.kill(worker, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells a process's children")
def test_a_worker_that_has_just_ended_does_not_block_a_backup() -> None:
    program = (
        "import subprocess, time; a = subprocess.Popen(['true']); print(a.pid, flush=True);"
        "time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        ended = int(supervisor.stdout.readline())
        state = msgspec.structs.replace(
            state_of(supervisor.pid), workers=(WorkerState(0, ended, 1, {}),)
        )
        with paused(state):
            pass
        supervisor.kill()
