"""Definitions in Python and SQL: the part of a project that Spark Declarative Pipelines runs."""

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.pipelines.cli import load_pipeline_spec, register_definitions
from pyspark.pipelines.spark_connect_graph_element_registry import (
    SparkConnectGraphElementRegistry,
)
from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, start_run
from pyspark.sql import SparkSession

from penstock.spark.pipeline.failure import PipelineFailed, first_lines
from penstock.spark.pipeline.project import Project

Say = Callable[[str], None]


def update(
    spark: SparkSession,
    project: Project,
    say: Say,
    *,
    dry: bool = False,
    full_refresh: Sequence[str] = (),
    full_refresh_all: bool = False,
) -> None:
    """Process what the sources hold now into every table and sink; `dry` only checks the graph."""
    with _clear_errors():
        spec = load_pipeline_spec(project.spec_path)
        graph = create_dataflow_graph(
            spark,
            default_catalog=spec.catalog,
            default_database=spec.database,
            sql_conf=_of_session(spark, spec.configuration),
        )
        with contextlib.redirect_stdout(io.StringIO()):  # it prints every file
            registry = SparkConnectGraphElementRegistry(spark, graph)
            register_definitions(project.spec_path, registry, spec, spark, graph)
        events = start_run(
            spark,
            graph,
            full_refresh=list(full_refresh),
            full_refresh_all=full_refresh_all,
            refresh=None,
            dry=dry,
            storage=project.storage,
        )
        for each in _messages(events):
            say(each)


def _of_session(spark: SparkSession, configuration: Mapping[str, str]) -> dict[str, str]:
    """The settings that a session can change; the driver got the others at its start."""
    return {name: value for name, value in configuration.items() if spark.conf.isModifiable(name)}


def _messages(events: Iterator[dict[str, Any]]) -> Iterator[str]:
    for each in events:
        if "pipeline_event_result" in each:
            # The message of a failed flow includes the stack traces of the JVM and of Python.
            yield first_lines(str(each["pipeline_event_result"].event.message))


@contextlib.contextmanager
def _clear_errors() -> Iterator[None]:
    """Report Spark's errors, caused by the project or its data, without a traceback."""
    try:
        yield
    except PySparkException as error:
        raise PipelineFailed(f"the pipeline failed: {first_lines(str(error))}") from error
