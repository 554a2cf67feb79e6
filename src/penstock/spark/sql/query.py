"""A SQL query on topics: its result as rows or, following, as batches of rows."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from penstock.errors import ConfigError
from penstock.spark.pipeline.failure import PipelineFailed, first_lines
from penstock.spark.pipeline.interrupt import in_thread, restored_sigint
from penstock.spark.pipeline.settings import DEFAULTS
from penstock.spark.pipeline.value_format import ValueFormat, source_options
from penstock.spark.sql.interactive import records, session
from penstock.spark.sql.topic_view import as_table, inferred

TIME_ZONE: Final = "spark.sql.session.timeZone"
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?)(?::?(\d\d?))?(?::?(\d\d?))?")
Emit = Callable[[Sequence[str], list[Sequence[Any]]], None]
"""Receives the columns and rows of a result, or of a part of it. Columns may share a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicQuery:
    """A query, its topics, and how to run it."""

    sql: str
    topics: Sequence[str]
    bootstrap: str
    master: str
    conf: Mapping[str, str]
    value_format: tuple[str, str | None] | None = None
    """Name and schema; None: inferred from the values."""
    follow: bool = False
    parquet: str | None = None
    """Where to write the result, instead of emitting it."""


def run_query(query: TopicQuery, emit: Emit) -> None:
    """Run until the result is complete or, following, until a signal handler raises."""
    try:
        with ExitStack() as left:
            with restored_sigint():
                left.enter_context(times_in(query.conf.get(TIME_ZONE, DEFAULTS[TIME_ZONE])))
                spark = left.enter_context(session("penstock sql", query.master, query.conf))
            left.callback(_stop_queries, spark)
            in_thread(lambda: _run(spark, query, emit))
    except PySparkException as error:
        raise PipelineFailed(first_lines(str(error))) from error


@contextmanager
def times_in(zone: str) -> Iterator[None]:
    """Let pyspark return times in the query's zone: it takes the machine's, without naming it."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = posix_zone(zone)
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


def posix_zone(zone: str) -> str:
    """Spark's name of a zone as the variable TZ has it: there an offset is that of UTC from the
    zone, and a name that is not known would be UTC.
    """
    if (offset := _OFFSET.fullmatch(zone)) is not None:
        sign, *parts = offset.groups()
        return f"zone{'-' if sign == '+' else '+'}{':'.join(each for each in parts if each)}"
    if zone in {"Z", "UT", "UTC", "GMT"}:
        return "UTC"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise ConfigError(
            f"{TIME_ZONE}: {zone!r} is not a zone such as Europe/Berlin or +01:00"
        ) from None
    return zone


def _stop_queries(spark: SparkSession) -> None:
    for each in spark.streams.active:
        each.stop()


def _run(spark: SparkSession, query: TopicQuery, emit: Emit) -> None:
    result = _result(spark, query)
    if query.follow:
        _follow(result, emit)
    elif query.parquet is not None:
        result.write.mode("errorifexists").parquet(query.parquet)
    else:
        emit(result.columns, values(result))


def _result(spark: SparkSession, query: TopicQuery) -> DataFrame:
    for topic in query.topics:
        if query.value_format is not None:
            value_format = ValueFormat(*query.value_format)
        else:
            value_format = inferred(records(spark, query.bootstrap, topic, follow=False))
        options = source_options(value_format)
        found = records(spark, query.bootstrap, topic, follow=query.follow, **options)
        as_table(found, value_format).createOrReplaceTempView(f"`{topic}`")
    return spark.sql(query.sql)


def values(result: DataFrame) -> list[Sequence[Any]]:
    """The rows by position, with structs inside of them as dicts."""
    return [[_plain(each) for each in row] for row in result.collect()]


def _plain(value: Any) -> Any:
    match value:
        case Row():
            return value.asDict(recursive=True)
        case list():
            return [_plain(each) for each in value]
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case _:
            return value


def _follow(result: DataFrame, emit: Emit) -> None:
    """Emit rows as they come; for an aggregation, the groups that changed."""

    def emit_batch(rows: DataFrame, _batch: int) -> None:
        found = values(rows)
        if found:
            emit(rows.columns, found)

    writer = result.writeStream.foreachBatch(emit_batch)
    try:
        query = writer.outputMode("append").start()
    except AnalysisException:
        query = writer.outputMode("update").start()
    query.awaitTermination()
