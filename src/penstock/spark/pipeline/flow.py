"""Runs a flow of `penstock.yml` as streaming queries: one for its rows, others for dead letters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.errors import ConfigError
from penstock.spark.pipeline.dead_letter import (
    connection_of,
    dead_lines,
    dead_records,
    dead_rows,
)
from penstock.spark.pipeline.expectation import Expectation, Otherwise, broken, enforced, passed
from penstock.spark.pipeline.flow_spec import UNREADABLE, FlowSpec, From, To
from penstock.spark.pipeline.project import user_path, user_url
from penstock.spark.pipeline.record import as_records, by_one_task, with_key
from penstock.spark.pipeline.topic_options import READ_TOPIC
from penstock.spark.pipeline.value_format import (
    ERROR,
    LETTER_FIELDS,
    LINE_FIELDS,
    RECORD,
    RECORD_FIELDS,
    ValueFormat,
    all_readable,
    parsed,
    source_options,
    unreadable,
    with_fields,
)

BOOTSTRAP = "kafka.bootstrap.servers"
Dead: TypeAlias = Callable[[DataFrame, Column, str, str | None], DataFrame]


@dataclass(frozen=True, slots=True)
class FlowContext:
    """Settings that the flows of a run share."""

    bootstrap: str
    directory: Path
    storage: str
    trigger: dict[str, Any]


def start_flow(spark: SparkSession, flow: FlowSpec, context: FlowContext) -> list[StreamingQuery]:
    """Start the flow's query, and one more for each kind of dead letter."""
    rows = _enforced(flow, _read(spark, flow.source, context))
    if flow.sql is not None:
        rows = spark.sql(flow.sql, source=rows)
    writer = _writer(rows, flow.to, context)
    connection = connection_of({**flow.source.options, **flow.to.options})
    if flow.to.table is not None and flow.dead_letters is not None:
        writer = writer.options(
            deadLetters=flow.dead_letters,
            bootstrap=context.bootstrap,
            pipeline=flow.name,
            **connection,
        )
    queries = [_start(writer, flow.name, context)]
    if flow.dead_letters is not None:
        # Separate queries with separate reads: only the flow's query commits to its group.
        for kind, bad in _letters(flow, _read(spark, _for_letters(flow.source), context)).items():
            name = f"{flow.name}.{kind}"
            to = To(topic=flow.dead_letters, options=connection)
            queries.append(_start(_writer(bad, to, context), name, context))
    return queries


def value_format(source: From) -> ValueFormat | None:
    return None if source.format is None else ValueFormat(source.format, source.schema)


def _read(spark: SparkSession, source: From, context: FlowContext) -> DataFrame:
    if source.topic is not None:
        options = READ_TOPIC | {"subscribe": source.topic}
        options |= source_options(value_format(source))
        if source.group is not None:
            options["groupId"] = source.group
        reader = spark.readStream.format("penstock").option(BOOTSTRAP, context.bootstrap)
        return reader.options(**options | source.options).load()
    if source.files is not None:
        reader = spark.readStream.format("penstock_files").options(**source.options)
        return reader.option("path", user_path(context.directory, source.files)).load()
    assert source.table is not None
    assert source.url is not None
    assert source.increasing is not None
    return (
        spark.readStream.format("penstock_table")
        .options(
            url=user_url(context.directory, source.url),
            table=source.table,
            increasing=source.increasing,
        )
        .options(**source.options)
        .load()
    )


def _for_letters(source: From) -> From:
    """The source without its group, and with the headers that dead letters keep."""
    options = {key: value for key, value in source.options.items() if key.lower() != "groupid"}
    if source.topic is not None:
        options["includeHeaders"] = "true"
    return msgspec.structs.replace(source, group=None, options=options)


def _parsed(
    flow: FlowSpec, rows: DataFrame, record_fields: Sequence[str] = RECORD_FIELDS
) -> DataFrame | None:
    """Rows with their record, fields and `_error`; None if the source has columns already."""
    given = value_format(flow.source)
    if given is None:
        return None
    return parsed(rows, given, record_fields if flow.source.files is None else LINE_FIELDS)


def _enforced(flow: FlowSpec, rows: DataFrame) -> DataFrame:
    """The rows that continue. Only here rows that break an expectation are counted."""
    read = _parsed(flow, rows)
    if read is not None:
        if flow.dead_letters is None:
            read = all_readable(read)
        rows = with_fields(read, with_record=True)
    for each in _expectations(flow):
        rows = enforced(rows, each)
    return rows


def _letters(flow: FlowSpec, rows: DataFrame) -> dict[str, DataFrame]:
    """Dead letters by kind. A row gets one reason: the first."""
    letters: dict[str, DataFrame] = {}
    dead: Dead = dead_rows
    group = flow.source.group
    read = _parsed(flow, rows, LETTER_FIELDS)
    if read is not None:
        dead = dead_records if flow.source.files is None else dead_lines
        letters[UNREADABLE] = dead(unreadable(read), F.col(ERROR), flow.name, group)
        rows = with_fields(read, with_record=True)
    for each in _expectations(flow):
        if each.otherwise is Otherwise.DROP:
            letters[each.slug] = dead(broken(rows, each), F.lit(each.reason), flow.name, group)
        rows = passed(rows, each)
    return letters


def _expectations(flow: FlowSpec) -> list[Expectation]:
    return [
        Expectation(each.name, each.condition, Otherwise(each.otherwise)) for each in flow.expect
    ]


def _writer(rows: DataFrame, to: To, context: FlowContext) -> DataStreamWriter:
    rows = rows.drop(RECORD)
    if to.topic is not None:
        made = with_key if "value" in rows.columns else as_records
        records = made(rows, to.keys)
        if "partition" not in records.columns:  # else the flow chooses the partition
            records = by_one_task(records, to.options)
        writer = records.writeStream.format("penstock")
        return writer.options(**{BOOTSTRAP: context.bootstrap, "topic": to.topic} | to.options)
    files = to.parquet or to.delta
    if files is not None:
        _check_columns("partition_by", to.partition_by, rows)
        writer = rows.writeStream.format("parquet" if to.parquet else "delta")
        writer = writer.option("path", user_path(context.directory, files)).options(**to.options)
        return writer.partitionBy(*to.partition_by) if to.partition_by else writer
    assert to.table is not None
    assert to.url is not None
    _check_columns("key", to.keys, rows)
    writer = rows.writeStream.format("penstock_table").options(**to.options)
    return writer.options(
        url=user_url(context.directory, to.url), table=to.table, key=",".join(to.keys)
    )


def _check_columns(setting: str, names: list[str], rows: DataFrame) -> None:
    missing = [each for each in names if each not in rows.columns]
    if missing:
        raise ConfigError(
            f"to.{setting}: no column {', '.join(missing)}; there are {', '.join(rows.columns)}"
        )


def _start(writer: DataStreamWriter, name: str, context: FlowContext) -> StreamingQuery:
    checkpoint = f"{context.storage.rstrip('/')}/flows/{name}"
    return (
        writer.queryName(name)
        .option("checkpointLocation", checkpoint)
        .outputMode("append")
        .trigger(**context.trigger)
        .start()
    )
