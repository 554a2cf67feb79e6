"""A question in SQL about topics: its answer as rows, or following, as batches of rows."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.spark.pipeline.failure import PipelineFailed, first_lines
from penstock.spark.pipeline.interrupt import apart, kept_interrupt
from penstock.spark.pipeline.value_format import ValueFormat, source_options
from penstock.spark.sql.interactive import records, session
from penstock.spark.sql.topic_view import as_table, inferred

Emit = Callable[[Sequence[str], list[dict[str, Any]]], None]
"""Is given the columns and rows of an answer, or of a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and of which topics."""

    query: str
    topics: Sequence[str]
    bootstrap: str
    master: str
    conf: Mapping[str, str]
    value_format: tuple[str, str | None] | None = None
    """By name and schema; None: as the values look."""
    follow: bool = False
    parquet: str | None = None
    """Where to write the answer instead of telling it."""


def answer(question: Question, emit: Emit) -> None:
    """Until it is told or, following, until the caller's signal handler raises something."""
    try:
        with ExitStack() as left:
            with kept_interrupt():
                spark = left.enter_context(session("penstock sql", question.master, question.conf))
            left.callback(_stop_queries, spark)
            apart(lambda: _answer(spark, question, emit))
    except PySparkException as error:
        raise PipelineFailed(first_lines(str(error))) from error


def _stop_queries(spark: SparkSession) -> None:
    for each in spark.streams.active:
        each.stop()


def _answer(spark: SparkSession, question: Question, emit: Emit) -> None:
    asked = _asked(spark, question)
    if question.follow:
        _follow(asked, emit)
    elif question.parquet is not None:
        asked.write.mode("errorifexists").parquet(question.parquet)
    else:
        emit(asked.columns, [each.asDict(recursive=True) for each in asked.collect()])


def _asked(spark: SparkSession, question: Question) -> DataFrame:
    for topic in question.topics:
        if question.value_format is not None:
            value_format = ValueFormat(*question.value_format)
        else:
            value_format = inferred(records(spark, question.bootstrap, topic, follow=False))
        options = source_options(value_format)
        found = records(spark, question.bootstrap, topic, follow=question.follow, **options)
        as_table(found, value_format).createOrReplaceTempView(f"`{topic}`")
    return spark.sql(question.query)


def _follow(asked: DataFrame, emit: Emit) -> None:
    """Rows as they come; of an aggregation, the groups that have changed."""

    def told(rows: DataFrame, _batch: int) -> None:
        found = [each.asDict(recursive=True) for each in rows.collect()]
        if found:
            emit(rows.columns, found)

    writer = asked.writeStream.foreachBatch(told)
    try:
        query = writer.outputMode("append").start()
    except AnalysisException:
        query = writer.outputMode("update").start()
    query.awaitTermination()
