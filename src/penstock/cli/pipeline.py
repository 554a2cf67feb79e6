"""`penstock pipeline`: runs projects of Spark Declarative Pipelines on Penstock's topics."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click
import msgspec

from penstock.cli.directory import DIRECTORY
from penstock.cli.failure import ExitCode, cause, sentence
from penstock.cli.frame.command import Noun
from penstock.cli.frame.terminal import note
from penstock.cli.output import FORMAT, is_data, iso_time, print_json, print_result
from penstock.cli.pipeline_view import Display, table
from penstock.cli.remote import Remote
from penstock.cli.run_file import RunState, read_run, write_run
from penstock.cli.spark import spark_part
from penstock.client.admin import BROKER_DEFAULT, NewTopic, create_topic
from penstock.client.cluster import Client
from penstock.errors import ConfigError, ErrorCode, KafkaError
from penstock.local.process import StartedProcess, end, start_time
from penstock.spark.pipeline.failure import PipelineFailed
from penstock.spark.pipeline.progress import BatchProgress, row
from penstock.spark.pipeline.project import ProjectTopic, load_project
from penstock.spark.pipeline.settings import pairs
from penstock.spark.pipeline.template import write_project

PROJECT = click.argument(
    "project", type=click.Path(path_type=Path), default=Path(), metavar="[PROJECT]"
)

TIMEOUT_MS = 10_000
"""How long to wait for a broker when creating missing topics."""


class Stopped(BaseException):
    """Raised by SIGTERM or Ctrl-C, so that all contexts are left in order."""


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for where a project runs."""
    for option in (
        click.option("-b", "--bootstrap", metavar="HOST:PORT,...", help="Brokers of the topics."),
        click.option(
            "--conf", "conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark."
        ),
        click.option(
            "--archive",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Archive by `pack`, for executors without penstock.",
        ),
        click.option("--packages", metavar="MAVEN,...", help="Jars for Spark to download."),
        click.option("--remote", metavar="sc://HOST", help="A Spark Connect server to run on."),
        click.option(
            "--master",
            default="local[*]",
            show_default=True,
            help="Where Spark runs: local[N], spark://HOST:PORT, yarn, k8s://...",
        ),
    ):
        command = option(command)
    return command


@click.group(cls=Noun)
def pipeline() -> None:
    """Run data pipelines on Spark."""


@pipeline.command("init", example="penstock pipeline init shop")
@click.argument("directory", type=DIRECTORY)
def init(directory: Path) -> None:
    """Create a project that runs as it is: a spec, a flow, definitions in Python and SQL."""
    for path in write_project(directory, directory.absolute().name):
        print_result(str(path), {"file": str(path)})


@pipeline.command("pack", example="penstock pipeline pack executors.tar.gz")
@click.argument("archive", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--include",
    multiple=True,
    metavar="NAME",
    help="Also pack this installed distribution; repeatable.",
)
def pack(archive: Path, include: tuple[str, ...]) -> None:
    """Pack what executors need besides Spark and Python into ARCHIVE, for run --archive.

    It works on the same kind of machine with the same version of Python. A name with .tar.gz is
    compressed.
    """
    names = spark_part("pipeline.pack").pack(archive, include)
    note(f"{archive}: penstock, {', '.join(names)}")
    if is_data():
        print_json({"file": str(archive), "packages": ["penstock", *names]})


@pipeline.command("validate", example="penstock pipeline validate shop")
@PROJECT
@run_options
def validate(project: Path, **given: Any) -> None:
    """Check a project: its files, and its definitions by Spark."""
    with reported_failures():
        run = spark_part("pipeline.run")
        display = Display()
        run.validate(planned(project, **given), run.RunListener(display.progress, display.message))
    note("valid")
    if is_data():
        print_json({"project": str(project), "valid": True})


@pipeline.command("run", example="penstock pipeline run shop --follow")
@PROJECT
@run_options
@click.option("--follow", is_flag=True, help="Process new records until stopped.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="With --follow: how often to check the sources.",
)
@click.option("--full-refresh", multiple=True, metavar="TABLE", help="Recompute this table.")
@click.option("--full-refresh-all", is_flag=True, help="Recompute all tables.")
def run(project: Path, **given: Any) -> None:
    """Process what the project's sources hold now and, with --follow, all that is added later.

    On a terminal a table shows the progress; elsewhere each micro-batch is a JSON object.
    """
    spark_run = spark_part("pipeline.run")
    plan = planned(project, **given)
    directory = plan.project.directory
    running = read_run(directory)
    if running is not None and running.process.is_alive():
        raise ConfigError(f"{directory}: process {running.process.pid} already runs this project")
    made = missing_topics(plan.project.own.topics, plan.bootstrap)
    if made:
        note(f"created {', '.join(made)}")
    display = Display()
    state = RunState(own_process(), plan.remote or plan.master, now_ms(), bootstrap=plan.bootstrap)
    write_run(directory, state)

    def on_progress(each: BatchProgress) -> None:
        nonlocal state
        state = msgspec.structs.replace(state, progress={**state.progress, each.query: each})
        write_run(directory, state)
        display.progress(each)

    with reported_failures(), stoppable(), remembered_end(directory, lambda: state):
        spark_run.run_project(plan, spark_run.RunListener(on_progress, display.message))


@pipeline.command("status", example="penstock pipeline status shop")
@PROJECT
@FORMAT
def status(project: Path, output: str) -> None:
    """Show whether a project runs, and the progress of each query."""
    state = read_run(project)
    if state is None:
        raise ConfigError(f"{project}: has never been run")
    alive = state.process.is_alive()
    if output == "json":
        print_json({**msgspec.to_builtins(state), "running": alive})
        return
    status = f"runs as process {state.process.pid}" if alive else "does not run"
    click.echo(f"{status}; started {iso_time(state.started_ms)} on {state.master}")
    if state.error is not None:
        click.echo(f"last error: {state.error}")
    if state.progress:
        click.echo("\n".join(table({name: row(each) for name, each in state.progress.items()})))


@pipeline.command("stop", example="penstock pipeline stop shop")
@PROJECT
@click.option("--kill", is_flag=True, help="Use SIGKILL.")
@click.option("--timeout", "seconds", default=60.0, show_default=True, help="How long to wait.")
def stop(project: Path, kill: bool, seconds: float) -> None:
    """Stop the run of a project; the next run continues where it stopped."""
    state = read_run(project)
    if state is None or not state.process.is_alive():
        raise ConfigError(f"{project}: does not run")
    end(state.process, kill=kill, patience_s=seconds)
    if is_data():
        print_json({"project": str(project), "stopped": True})


def planned(project: Path, conf: tuple[str, ...], packages: str | None, **given: Any) -> Any:
    """The `penstock.spark.pipeline.run.PipelineRun` for the options."""
    found = load_project(project)
    settings = pairs(conf, "--conf")
    if packages:
        settings["spark.jars.packages"] = packages
    if given["remote"] is not None and (settings or given["archive"]):
        raise ConfigError(
            "--conf, --packages, --archive: not with --remote; set them on the server"
        )
    bootstrap = found.bootstrap(given.pop("bootstrap"), os.environ)
    return spark_part("pipeline.run").PipelineRun(
        project=found, bootstrap=bootstrap, conf=settings, **given
    )


def missing_topics(topics: Mapping[str, ProjectTopic], bootstrap: str) -> list[str]:
    """Create the topics that do not exist; returns their names."""
    made: list[str] = []

    async def create(client: Client) -> None:
        for name, spec in topics.items():
            new = NewTopic(
                name=name,
                partitions=spec.partitions or BROKER_DEFAULT,
                replication_factor=spec.replicas or BROKER_DEFAULT,
                configs=spec.configs,
            )
            try:
                await create_topic(client, new)
            except KafkaError as error:
                if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
            else:
                made.append(name)

    if topics:
        Remote(bootstrap, TIMEOUT_MS).run(create)
    return made


def now_ms() -> int:
    return int(time.time() * 1000)


def own_process() -> StartedProcess:
    began = start_time(os.getpid())
    assert began is not None
    return StartedProcess(os.getpid(), began)


@contextmanager
def remembered_end(directory: Path, last: Callable[[], RunState]) -> Iterator[None]:
    """Record the end of the run, and its error if any, in the run file."""
    error: str | None = None
    try:
        yield
    except Exception as failure:
        error = sentence(cause(failure))
        raise
    finally:
        write_run(directory, msgspec.structs.replace(last(), ended_ms=now_ms(), error=error))


@contextmanager
def reported_failures() -> Iterator[None]:
    try:
        yield
    except PipelineFailed as error:
        click.echo(f"penstock: {sentence(cause(error))}", err=True)
        raise SystemExit(ExitCode.FAILED) from None


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM and Ctrl-C end the block in order, and the command succeeds."""

    def stopped(number: int, _frame: FrameType | None) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)  # further signals are ignored
        raise Stopped(number)

    before = {each: signal.signal(each, stopped) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except Stopped:
        click.echo("stopped", err=True)
        sys.stdout.flush()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
