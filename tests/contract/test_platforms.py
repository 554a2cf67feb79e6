"""Penstock on macOS and on Windows, as far as that can be tested on Linux.

A separate process without the features that macOS lacks imports all modules and runs a broker. On
Windows the commands say what to do instead.
"""

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"

LIKE_MACOS = """
import asyncio, ctypes, fcntl, multiprocessing, os, platform, select, socket, ssl, subprocess, sys
import http.server, selectors, sqlite3, urllib.request, uuid
import confluent_kafka, cryptography.x509, grpc_tools.protoc, numpy, pandas, pyarrow, pyspark
import pytest, uvicorn, uvloop

for module, names in {
    os: ["sched_getaffinity", "sched_setaffinity", "posix_fadvise", "posix_fallocate", "fdatasync"],
    socket: ["MSG_MORE", "SO_PEERCRED", "TCP_USER_TIMEOUT", "TCP_QUICKACK", "SOCK_CLOEXEC"],
    select: ["epoll"],
}.items():
    for name in names:
        delattr(module, name)
for name in ("copy_file_range", "eventfd", "memfd_create", "pidfd_open", "splice", "O_DIRECT",
             "O_TMPFILE", "O_PATH"):
    if hasattr(os, name):
        delattr(os, name)
selectors.DefaultSelector = selectors.PollSelector


def refused(*_):  # macOS takes a flock of the same process for another owner's
    raise BlockingIOError


fcntl.lockf = refused
sys.platform = "darwin"
"""

IMPORTS = """
import importlib, pkgutil
import penstock
for each in pkgutil.walk_packages(penstock.__path__, "penstock."):
    try:
        if not each.name.endswith("__main__"):
            importlib.import_module(each.name)
    except ModuleNotFoundError as error:  # an extension in C, which has a twin in Python
        if not error.name.rpartition(".")[2].startswith("_"):
            raise
"""

SERVES = """

from click.testing import CliRunner
from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker
with EmbeddedBroker() as broker:
    broker.create_topic("events")
    told = CliRunner().invoke(main, ["produce", "events", "-b", broker.bootstrap], input="a\\n")
    assert told.exit_code == 0, told.output
    told = CliRunner().invoke(main, ["consume", "events", "-b", broker.bootstrap])
    assert told.stdout == "a\\n", told.output
"""


def run(program: str) -> "subprocess.CompletedProcess[str]":
    environ = {**os.environ, "PYTHONPATH": str(SOURCE), "PENSTOCK_PURE": "1"}
    return subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False
    )


def test_a_broker_works_without_linux_only_features() -> None:
    done = run(LIKE_MACOS + IMPORTS + SERVES)
    assert done.returncode == 0, done.stderr


def test_commands_on_windows_advise_wsl() -> None:
    for entry in ("penstock.cli.entry", "penstock.kafka_tools.entry"):
        done = run(f"import sys; sys.platform = 'win32'; from {entry} import run; run()")
        assert done.returncode == 2
        assert done.stderr.startswith("penstock: it does not run on Windows itself: use WSL")
        assert "Traceback" not in done.stderr


def test_the_test_broker_on_windows_advises_wsl() -> None:
    done = run("import asyncio, sys; sys.platform = 'win32'; import penstock.testing.broker")
    assert "ImportError: it does not run on Windows itself: use WSL" in done.stderr
