"""Spark pipelines, from the run files that `penstock pipeline run` writes into their projects."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.process_start import process_start

FILE = Path(".penstock", "run.json")
GONE = "its process ended without an error message: it was killed, or the machine restarted"


class Query(Struct, frozen=True):
    """The last micro-batch of a query."""

    query: str
    batch: int
    at: str
    rows: int
    rows_per_second: float
    batch_ms: int
    lag: int | None = None
    broken: dict[str, int] = {}


class Pipeline(Struct, frozen=True):
    """A project and its last run; `last_error` says why the run failed, if it did."""

    name: str
    folder: str
    runs: bool = False
    pid: int | None = None
    master: str | None = None
    started_ms: int | None = None
    queries: list[Query] = []
    ended_ms: int | None = None
    last_error: str | None = None


class Process(Struct, frozen=True):
    """Pid and start time, which tell a process from a later one with the same pid."""

    pid: int
    began: str

    def is_alive(self) -> bool:
        return process_start(self.pid) == self.began


class Run(Struct, frozen=True):
    """The contents of the run file."""

    process: Process
    master: str
    started_ms: int
    progress: dict[str, Query] = {}
    bootstrap: str | None = None
    ended_ms: int | None = None
    error: str | None = None


async def pipelines(watch: ClusterWatch, _: ClusterLook, __: Mapping[str, str]) -> list[Pipeline]:
    return await asyncio.to_thread(read_projects, watch.projects)


def read_projects(folders: Sequence[Path]) -> list[Pipeline]:
    return [read_project(each) for each in folders]


def read_run(folder: Path) -> Run | None:
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Run)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def read_project(folder: Path) -> Pipeline:
    name, run = folder.absolute().name, read_run(folder)
    if run is None:
        return Pipeline(name, str(folder))
    runs = run.process.is_alive()
    return Pipeline(
        name,
        str(folder),
        runs,
        run.process.pid,
        run.master,
        run.started_ms,
        sorted(run.progress.values(), key=lambda each: each.query),
        run.ended_ms,
        run.error or (GONE if not runs and run.ended_ms is None else None),
    )
