"""A log directory has one owner, whichever kind of lock the other process uses."""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.log.disk import DiskFiles
from penstock.log.files import DirectoryLocked

POSIX_LOCK = """
import fcntl, sys
with open(sys.argv[1], "a") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("held", flush=True)
    sys.stdin.read()
"""
"""Locks like a process with Java's FileLock."""


def holder(path: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", POSIX_LOCK, str(path)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_a_directory_that_a_java_process_holds_is_refused(tmp_path: Path) -> None:
    with holder(tmp_path / ".lock") as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(DirectoryLocked):
            DiskFiles().lock(tmp_path / ".lock")
        other.communicate()
    DiskFiles().lock(tmp_path / ".lock")()


def test_a_java_process_cannot_lock_a_directory_that_is_held_here(tmp_path: Path) -> None:
    release = DiskFiles().lock(tmp_path / ".lock")
    with holder(tmp_path / ".lock") as other:
        assert "BlockingIOError" in other.communicate()[1]
    release()
    with holder(tmp_path / ".lock") as other:
        assert other.communicate() == ("held\n", "")
