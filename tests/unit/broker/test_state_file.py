"""Who serves from a directory: told by a file, a lock, and the moment a process began."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.broker.startup.process_start import process_start
from penstock.broker.startup.state_file import (
    BrokerState,
    hold_directory,
    is_held,
    read_state,
    remove_state,
    write_state,
)
from penstock.errors import ConfigError


def state(pid: int, began: str) -> BrokerState:
    return BrokerState(pid, began, 1, "cluster", "127.0.0.1:9092", {})


def ours() -> BrokerState:
    began = process_start(os.getpid())
    assert began is not None
    return state(os.getpid(), began)


def test_a_running_broker_is_found(tmp_path: Path) -> None:
    write_state(tmp_path, ours())
    assert read_state(tmp_path) == ours()


@pytest.mark.parametrize(
    "text", ["", "{", "{}", '{"pid": 1, "broker_id": 1}', '{"pid": "one"}', "[1]"]
)
def test_a_file_that_tells_nothing_is_of_nobody(text: str, tmp_path: Path) -> None:
    (tmp_path / "broker.json").write_text(text)
    assert read_state(tmp_path) is None


def test_a_pid_that_was_handed_out_again_is_not_the_broker(tmp_path: Path) -> None:
    write_state(tmp_path, state(os.getpid(), "long ago"))
    assert read_state(tmp_path) is None


def test_a_process_that_ended_is_not_the_broker_though_nobody_has_waited_for_it(
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
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and left as a zombie
        assert process_start(child.pid) is None
        assert read_state(tmp_path) is None
    assert process_start(child.pid) is None


def test_only_the_broker_that_wrote_the_file_takes_it_away(tmp_path: Path) -> None:
    write_state(tmp_path, ours())
    remove_state(tmp_path, state(1, "before"))
    assert read_state(tmp_path) is not None
    remove_state(tmp_path, ours())
    assert not (tmp_path / "broker.json").exists()


def test_a_directory_is_held_by_one_broker_which_the_next_one_names(tmp_path: Path) -> None:
    assert not is_held(tmp_path)
    release = hold_directory(tmp_path)
    write_state(tmp_path, ours())
    assert is_held(tmp_path)
    with pytest.raises(ConfigError, match=rf"in use: a broker \(pid {os.getpid()}\) runs there at"):
        hold_directory(tmp_path)
    release()
    assert not is_held(tmp_path)
