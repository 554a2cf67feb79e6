"""Changes of pipelines: start and stop. A pipeline is a process that outlives the console."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from msgspec import Struct

from penstock.console.change import Change, Doing, Done
from penstock.console.jobs import Job
from penstock.console.pipelines import Process, Run, read_run
from penstock.errors import ConfigError
from penstock.process_start import process_start

LOG: Final = Path(".penstock", "run.log")
START_S: Final = 180.0
STOP_S: Final = 60.0
POLL_S: Final = 0.1
REMOTE: Final = "sc://"

_children: Final[dict[Path, subprocess.Popen[bytes]]] = {}
"""Processes that this console started, by project. They are polled, or they would stay zombies."""


class PipelineStart(Struct, frozen=True, kw_only=True):
    """The folder of a project, as the list of pipelines names it."""

    folder: str


class PipelineStop(Struct, frozen=True, kw_only=True):
    """The folder of a project, as the list of pipelines names it."""

    folder: str


async def start(doing: Doing, wanted: PipelineStart) -> Done:
    folder = known(doing, wanted.folder)
    last = read_run(folder)
    if last is not None and last.process.is_alive():
        raise ConfigError(f"process {last.process.pid} already runs {folder}")
    child = _children.get(folder)
    if child is not None and child.poll() is None:
        raise ConfigError(f"{folder} is being started, by process {child.pid}")
    _children[folder] = child = await asyncio.to_thread(begun, folder, command(folder, last))

    async def work(_: Job) -> str:
        return await began(folder, child)

    doing.start(f"start pipeline {folder.absolute().name}", work)
    return Done(f"starting {folder}", "/pipelines")


def command(folder: Path, last: Run | None) -> list[str]:
    """The command that repeats the last run: same Spark master, same brokers."""
    found = [sys.executable, "-P", "-m", "penstock", "pipeline", "run", str(folder), "--follow"]
    if last is not None:
        found += ["--remote" if last.master.startswith(REMOTE) else "--master", last.master]
        found += ["--bootstrap", last.bootstrap] if last.bootstrap else []
    return found


def begun(folder: Path, words: list[str]) -> subprocess.Popen[bytes]:
    """Start the process, with its standard error in a log file. Its progress is in the run file."""
    try:
        (folder / LOG).parent.mkdir(exist_ok=True)
        with (folder / LOG).open("wb") as log:
            return subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror}") from None


async def began(folder: Path, child: subprocess.Popen[bytes]) -> str:
    """Wait until the run file names this process; another may have started the project first."""
    try:
        async with asyncio.timeout(START_S):
            while child.poll() is None:
                run, own = read_run(folder), Process(child.pid, process_start(child.pid) or "")
                if run is not None and run.process == own:
                    return f"runs as process {child.pid}"
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise ConfigError(f"process {child.pid} has not begun after {START_S:.0f} s") from None
    raise ConfigError(last_words(folder / LOG))


def last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    said = [each for each in lines if each.strip()]
    return said[-1].removeprefix("penstock: ") if said else "it ended, and printed nothing"


async def stop(doing: Doing, wanted: PipelineStop) -> Done:
    folder = known(doing, wanted.folder)
    last = read_run(folder)
    if last is None or not last.process.is_alive():
        raise ConfigError(f"{folder} does not run")
    process = last.process
    try:
        os.kill(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it ended by itself in the meantime
    except PermissionError:
        text = f"process {process.pid} belongs to another user of this machine"
        raise ConfigError(text) from None

    async def work(_: Job) -> str:
        return await ended(folder, process)

    doing.start(f"stop pipeline {folder.absolute().name}", work)
    return Done(f"stopping {folder}", "/pipelines")


async def ended(folder: Path, process: Process) -> str:
    try:
        async with asyncio.timeout(STOP_S):
            while process.is_alive():
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        text = f"process {process.pid} does not stop: `penstock pipeline stop --kill {folder}`"
        raise ConfigError(text) from None
    if folder in _children:
        _children[folder].poll()
    return "stopped; the next run goes on from there"


def known(doing: Doing, folder: str) -> Path:
    """The project folder, if the console was started with it; any other folder is refused, so that
    no other program can be started.
    """
    for each in doing.projects:
        if str(each) == folder:
            return each
    raise ConfigError(f"{folder} is not a project of this console: see --pipeline")


PIPELINES = (
    Change(
        "pipeline.start",
        "POST",
        "/api/v1/pipelines/start",
        "Start a pipeline as it ran last, to process new records until it is stopped.",
        PipelineStart,
        start,
    ),
    Change(
        "pipeline.stop",
        "POST",
        "/api/v1/pipelines/stop",
        "Stop a pipeline; the next run goes on where it stopped.",
        PipelineStop,
        stop,
    ),
)
