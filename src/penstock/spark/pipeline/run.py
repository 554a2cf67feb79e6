"""Runs a project until it is done or stopped: its flows as queries, its definitions by Spark's
engine.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import ConfigError
from penstock.spark.pipeline.declared import update
from penstock.spark.pipeline.engine import Engine, local_engine, remote_engine
from penstock.spark.pipeline.failure import PipelineFailed, first_lines
from penstock.spark.pipeline.flow import FlowContext, start_flow, value_format
from penstock.spark.pipeline.flow_order import stages
from penstock.spark.pipeline.flow_spec import FlowSpec
from penstock.spark.pipeline.pack import archive_settings
from penstock.spark.pipeline.progress import BatchProgress, progress
from penstock.spark.pipeline.project import Project
from penstock.spark.pipeline.settings import DELTA, DELTA_JAR, catalog_settings, spark_settings

STEP_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRun:
    """A project and the options of its run."""

    project: Project
    bootstrap: str
    master: str = "local[*]"
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    archive: Path | None = None
    follow: bool = False
    interval_s: float = 5.0
    full_refresh: tuple[str, ...] = ()
    full_refresh_all: bool = False


@dataclass(frozen=True, slots=True)
class RunListener:
    """Receives the progress of each micro-batch, and other messages."""

    progress: Callable[[BatchProgress], None]
    message: Callable[[str], None]


def validate(run: PipelineRun, listener: RunListener) -> None:
    """Let Spark check the definitions without running them. Flows were checked when they were read,
    except for their formats.
    """
    for flow in run.project.own.flows:
        with named(flow):
            value_format(flow.source)
    with _engine(run, listener) as engine:
        if run.project.spec.libraries:
            update(engine.spark, run.project, listener.message, dry=True)


def run_project(run: PipelineRun, listener: RunListener) -> None:
    """Run until all that the sources hold is processed or, following, until the caller's signal
    handler raises.

    A run without follow has an order: flows stage by stage, then definitions. With follow all run
    concurrently.
    """
    flows = run.project.own.flows
    with _engine(run, listener) as engine:
        listener.message(f"Spark {engine.spark.version} is ready at {run.remote or run.master}")
        if run.follow:
            with _running(engine, flows, run, listener) as queries:
                _declared(engine.spark, run, listener, queries)
                _wait(queries)
            return
        for some in stages(flows):
            with _running(engine, some, run, listener) as queries:
                _wait(queries)
        _declared(engine.spark, run, listener, [])


@contextmanager
def _running(
    engine: Engine, flows: Sequence[FlowSpec], run: PipelineRun, listener: RunListener
) -> Iterator[list[StreamingQuery]]:
    """Queries that end with the block."""
    queries: list[StreamingQuery] = []
    context = FlowContext(run.bootstrap, run.project.directory, run.project.storage, _trigger(run))
    try:
        for flow in flows:
            with named(flow):
                queries += start_flow(engine.spark, flow, context)
        yield queries
    finally:
        for each in queries:
            each.stop()
        if not engine.is_driver:
            _report_last(queries, listener)


def _wait(queries: list[StreamingQuery]) -> None:
    while any(each.isActive for each in queries):
        _check(queries)
        time.sleep(STEP_S)
    _check(queries)


def _engine(run: PipelineRun, listener: RunListener) -> AbstractContextManager[Engine]:
    os.environ["PENSTOCK_BOOTSTRAP"] = run.bootstrap  # where definitions find it
    if run.remote is not None:
        return remote_engine(run.remote)
    spec = run.project.spec
    own = catalog_settings(run.project.storage, persistent=run.project.makes_tables())
    if run.project.writes_delta():
        own |= DELTA
    settings = spark_settings(spec.name, run.master, own | spec.configuration, run.conf)
    if run.archive is not None:
        settings |= archive_settings(run.archive, settings.get("spark.archives"))
    elsewhere = run.archive is not None
    return local_engine(
        settings, lambda each: listener.progress(progress(each)), elsewhere=elsewhere
    )


@contextmanager
def named(flow: FlowSpec) -> Iterator[None]:
    """Add the flow's name to its errors."""
    try:
        yield
    except PySparkException as error:
        message = first_lines(str(error))
        if flow.to.delta is not None and "DATA_SOURCE_NOT_FOUND" in message:
            message = f"Spark has no Delta; let it fetch the jar: --packages {DELTA_JAR}"
        raise PipelineFailed(f"flow {flow.name!r}: {message}") from error
    except ConfigError as error:
        raise ConfigError(f"flow {flow.name!r}: {error}") from error


def _trigger(run: PipelineRun) -> dict[str, Any]:
    if not run.follow:
        return {"availableNow": True}
    return {"processingTime": f"{round(run.interval_s * 1000)} milliseconds"}


def _declared(
    spark: SparkSession, run: PipelineRun, listener: RunListener, queries: list[StreamingQuery]
) -> None:
    """Spark updates declared tables once per call, so following means to call it repeatedly."""
    if not run.project.spec.libraries:
        return
    refresh, refresh_all = run.full_refresh, run.full_refresh_all
    for _ in _rounds(run):
        update(
            spark,
            run.project,
            listener.message,
            full_refresh=refresh,
            full_refresh_all=refresh_all,
        )
        refresh, refresh_all = (), False
        _check(queries)


def _rounds(run: PipelineRun) -> Iterator[None]:
    while True:
        began = time.monotonic()
        yield
        if not run.follow:
            return
        time.sleep(max(0.0, began + run.interval_s - time.monotonic()))


def _check(queries: list[StreamingQuery]) -> None:
    for each in queries:
        error = each.exception()
        if error is not None:
            raise PipelineFailed(f"flow {each.name!r}: {first_lines(str(error))}")


def _report_last(queries: list[StreamingQuery], listener: RunListener) -> None:
    """Report the last progress of each query, if the driver is another process."""
    for each in queries:
        last: Any = each.lastProgress
        if last is not None:
            listener.progress(progress(last if isinstance(last, dict) else last.__dict__))
