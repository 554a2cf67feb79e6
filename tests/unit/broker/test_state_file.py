"""Which broker runs in a directory: by its file, its lock, and the start of its process."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.broker.startup.state_file import (
    LOCK_NAME,
    BrokerState,
    hold_directory,
    is_held,
    read_state,
    remove_state,
    was_killed,
    write_state,
)
from penstock.errors import ConfigError
from penstock.process_start import process_start


def state(pid: int, began: str) -> BrokerState:
    return BrokerState(pid, began, 1, "cluster", "127.0.0.1:9092", {})


def ours() -> BrokerState:
    began = process_start(os.getpid())
    assert began is not None
    return state(os.getpid(), began)


def test_a_running_broker_is_found(tmp_path: Path) -> None:
    assert not was_killed(tmp_path)
    write_state(tmp_path, ours())
    assert read_state(tmp_path) == ours()
    assert not was_killed(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{", "{}", '{"pid": 1, "broker_id": 1}', '{"pid": "one"}', "[1]"]
)
def test_an_unreadable_file_means_that_no_broker_runs(text: str, tmp_path: Path) -> None:
    (tmp_path / "broker.json").write_text(text)
    assert read_state(tmp_path) is None


def test_a_reused_pid_is_not_the_broker(tmp_path: Path) -> None:
    write_state(tmp_path, state(os.getpid(), "long ago"))
    assert read_state(tmp_path) is None
    assert was_killed(tmp_path)


def test_a_zombie_is_not_the_broker(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        began = process_start(child.pid)
        assert began is not None
        write_state(tmp_path, state(child.pid, began))
        assert read_state(tmp_path) is not None
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, but not reaped
        assert process_start(child.pid) is None
        assert read_state(tmp_path) is None
    assert process_start(child.pid) is None


def test_only_the_broker_that_wrote_the_file_removes_it(tmp_path: Path) -> None:
    write_state(tmp_path, ours())
    remove_state(tmp_path, state(1, "before"))
    assert read_state(tmp_path) is not None
    remove_state(tmp_path, ours())
    assert not (tmp_path / "broker.json").exists()


def test_the_error_of_a_second_broker_names_the_first_one(tmp_path: Path) -> None:
    assert not is_held(tmp_path)
    release = hold_directory(tmp_path)
    write_state(tmp_path, ours())
    assert is_held(tmp_path)
    with pytest.raises(ConfigError, match=rf"in use: a broker \(pid {os.getpid()}\) runs there at"):
        hold_directory(tmp_path)
    release()
    assert not is_held(tmp_path)


def test_checking_the_lock_needs_no_write_access_and_ignores_other_checks(
    tmp_path: Path,
) -> None:
    hold_directory(tmp_path)()
    lock = tmp_path / LOCK_NAME
    lock.chmod(0o444)
    with lock.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)  # as `is_held` does in another process
        assert not is_held(tmp_path)


def test_a_broker_starts_while_others_check_its_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hold_directory(tmp_path)()
    with (tmp_path / LOCK_NAME).open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(other, fcntl.LOCK_UN))
        hold_directory(tmp_path)()
