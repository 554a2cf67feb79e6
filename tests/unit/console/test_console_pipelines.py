"""How the console reads the run files of pipelines, and starts and stops pipelines."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from penstock.cli.run_file import RunState, write_run
from penstock.client.address import Address
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.console.change import Doing
from penstock.console.changes.pipelines import (
    PipelineStart,
    PipelineStop,
    began,
    command,
    start,
    stop,
)
from penstock.console.jobs import Job, Jobs
from penstock.console.pipelines import GONE, Pipeline, read_project, read_projects, read_run
from penstock.errors import ConfigError
from penstock.local.process import StartedProcess
from penstock.process_start import process_start
from penstock.spark.pipeline.progress import BatchProgress

BATCH = BatchProgress("totals", 3, "2026-01-01T00:00:00Z", 10, 5.0, 200, 7, None, {"positive": 2})


def process_of(pid: int) -> StartedProcess:
    return StartedProcess(pid, process_start(pid) or "")


def test_a_project_is_shown_with_its_last_batches(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    (tmp_path / "none").mkdir()
    shop.mkdir()
    write_run(shop, RunState(process_of(os.getpid()), "local[*]", 5, {"totals": BATCH}))
    found, none = read_projects([shop, tmp_path / "none"])
    assert (found.name, found.runs, found.master) == ("shop", True, "local[*]")
    assert found.last_error is None
    (query,) = found.queries
    assert (query.rows_per_second, query.lag, query.broken) == (5.0, 7, {"positive": 2})
    assert none == Pipeline("none", str(tmp_path / "none"))


def test_another_process_with_the_same_pid_is_not_the_pipeline(tmp_path: Path) -> None:
    write_run(tmp_path, RunState(StartedProcess(os.getpid(), "earlier"), "local", 5))
    found = read_project(tmp_path)
    assert (found.runs, found.last_error) == (False, GONE)


def test_the_error_that_ended_a_run_is_shown(tmp_path: Path) -> None:
    state = RunState(StartedProcess(os.getpid(), "x"), "local", 5, ended_ms=9, error="no column x")
    write_run(tmp_path, state)
    found = read_project(tmp_path)
    assert (found.ended_ms, found.last_error) == (9, "no column x")
    write_run(tmp_path, RunState(StartedProcess(os.getpid(), "x"), "local", 5, ended_ms=9))
    assert read_project(tmp_path).last_error is None, "it was stopped in order"


def test_an_unreadable_run_file_counts_as_no_run(tmp_path: Path) -> None:
    (tmp_path / ".penstock").mkdir()
    (tmp_path / ".penstock" / "run.json").write_text("{")
    assert read_project(tmp_path) == Pipeline(tmp_path.name, str(tmp_path))


def test_a_start_uses_the_spark_address_and_brokers_of_the_last_run(tmp_path: Path) -> None:
    words = command(tmp_path, None)
    assert words[1:] == ["-P", "-m", "penstock", "pipeline", "run", str(tmp_path), "--follow"]
    for master, option in (("local[2]", "--master"), ("sc://spark:15002", "--remote")):
        write_run(tmp_path, RunState(StartedProcess(1, "x"), master, 5, bootstrap="kafka1:9092"))
        tail = command(tmp_path, read_run(tmp_path))[8:]
        assert tail == [option, master, "--bootstrap", "kafka1:9092"]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process in place of a pipeline, which stops cleanly on SIGTERM."""
    script = "import sys, time\nprint('up', flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        write_run(tmp_path, RunState(process_of(process.pid), "local", 5))
        yield process
        process.kill()


class WorkOfJob(Jobs):
    """Runs the last job when the test asks for it."""

    work: Callable[[Job], Awaitable[str]]

    def start(self, what: str, user: str, work: Callable[[Job], Awaitable[str]]) -> Job:
        self.work = work
        return super().start(what, user, work)


def done(folder: Path, change: PipelineStart | PipelineStop) -> str:
    """The result text of the job that the change started."""

    async def go() -> str:
        jobs = WorkOfJob(SystemClock())
        doing = Doing(Client([Address("127.0.0.1", 1)]), jobs, "olga", None, (folder,))
        if isinstance(change, PipelineStart):
            await start(doing, change)
        else:
            await stop(doing, change)
        return await jobs.work(jobs.all[-1])

    return asyncio.run(go())


def test_a_pipeline_is_stopped(tmp_path: Path, running: subprocess.Popen[bytes]) -> None:
    assert done(tmp_path, PipelineStop(folder=str(tmp_path))).startswith("stopped")
    assert running.wait(5) != 0
    with pytest.raises(ConfigError, match="does not run"):
        done(tmp_path, PipelineStop(folder=str(tmp_path)))


def test_a_start_has_succeeded_once_the_run_file_names_its_process(
    tmp_path: Path, running: subprocess.Popen[bytes]
) -> None:
    assert asyncio.run(began(tmp_path, running)) == f"runs as process {running.pid}"


@pytest.mark.usefixtures("running")
def test_a_running_pipeline_is_not_started_again(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="already runs"):
        done(tmp_path, PipelineStart(folder=str(tmp_path)))


def test_only_the_consoles_own_projects_are_started(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a project of this console"):
        done(tmp_path / "shop", PipelineStart(folder=str(tmp_path)))


def test_a_failed_start_gives_its_reason(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no spark-pipeline.yml there"):
        done(tmp_path, PipelineStart(folder=str(tmp_path)))
