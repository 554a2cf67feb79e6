"""What the Python files of a project import: topics as sources and sinks, and expectations.

from pyspark import pipelines as dp
from penstock.spark.pipeline.define import expect_or_drop, read_topic, topic_sink

@dp.table
@expect_or_drop("known status", "status between 100 and 599", dead_letters="access-log-dead")
def requests():
    return read_topic("access-log", format="access-log")
"""

import functools
import os
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Final

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.errors import ConfigError
from penstock.spark.avro.schema_file import schema_text
from penstock.spark.pipeline.dead_letter import connection_of, dead_records, dead_rows
from penstock.spark.pipeline.expectation import Expectation, Otherwise, broken, enforced, passed
from penstock.spark.pipeline.flow_spec import check_read_whole, check_repeatable
from penstock.spark.pipeline.project import DEFAULT_BOOTSTRAP
from penstock.spark.pipeline.record import as_records, by_one_task
from penstock.spark.pipeline.topic_options import READ_TOPIC
from penstock.spark.pipeline.value_format import (
    ERROR,
    LETTER_FIELDS,
    RECORD_FIELDS,
    ValueFormat,
    all_readable,
    parsed,
    source_options,
    unreadable,
    with_fields,
)

Query = Callable[[], DataFrame]
BOOTSTRAP: Final = "kafka.bootstrap.servers"
_for_dead_letters: ContextVar[bool] = ContextVar("aside", default=False)
"""Whether the flow of dead letters builds the query. That flow reads the same source again: it must
not commit to the group, which two readers would move back and forth, nor count broken expectations
a second time.
"""


def bootstrap() -> str:
    """The brokers of this run: `penstock pipeline run --bootstrap`, or PENSTOCK_BOOTSTRAP."""
    return os.environ.get("PENSTOCK_BOOTSTRAP") or DEFAULT_BOOTSTRAP


def topic_source(
    topic: str,
    *,
    format: str | None = None,  # noqa: A002 - Spark's word for it
    schema: str | None = None,
    group: str | None = None,
    dead_letters: str | None = None,
    **options: str,
) -> Query:
    """Declare a topic as a source, outside of any query. Call the result inside a query to get the
    stream of the topic's committed records from the first on or, with a format, of their values'
    fields.

    Values that the format cannot read go to the topic `dead_letters`; without one they end the
    run, since nothing may get lost. `group` makes the progress visible to Kafka's tools.
    """
    check_read_whole(options)
    if format == "avro" and schema is not None:
        schema = schema_text(schema, Path())  # Spark runs definitions in the project's folder
    value_format = None if format is None else ValueFormat(format, schema)

    def records() -> DataFrame:
        reader = _session().readStream.format("penstock").option(BOOTSTRAP, bootstrap())
        reader = reader.options(**{**READ_TOPIC, "subscribe": topic, **options})
        reader = reader.options(**source_options(value_format))
        if group is not None and not _for_dead_letters.get():
            reader = reader.option("groupId", group)
        if value_format is not None and _for_dead_letters.get():
            reader = reader.option("includeHeaders", "true")  # dead letters keep them
        return reader.load()

    if value_format is None:
        return records
    read = partial(_read, records, value_format)
    if dead_letters is None:
        return lambda: with_fields(all_readable(read()))
    name = re.sub(r"\W", "_", topic)
    _to_dead_letters(
        f"{name}_unreadable",
        dead_letters,
        lambda: dead_records(unreadable(read()), F.col(ERROR), name, group),
        connection_of(options),
    )
    return lambda: with_fields(read())


def _read(records: Query, value_format: ValueFormat) -> DataFrame:
    fields = LETTER_FIELDS if _for_dead_letters.get() else RECORD_FIELDS
    return parsed(records(), value_format, fields)


def read_batch(topic: str, **options: str) -> DataFrame:
    """All committed records that a topic holds now, for materialized views."""
    reader = _session().read.format("penstock").option(BOOTSTRAP, bootstrap())
    return reader.options(**{**READ_TOPIC, "subscribe": topic, **options}).load()


def stream_of(name: str) -> DataFrame:
    """The rows of a view or table of this project, as a stream."""
    return _session().readStream.table(name)


def topic_sink(name: str, topic: str, **options: str) -> None:
    """A sink for append flows; it needs a column `value`, and also writes `key` and `headers`."""
    dp.create_sink(name, "penstock", {BOOTSTRAP: bootstrap(), "topic": topic, **options})


def to_topic(topic: str, *, key: str | None = None, **options: str) -> Callable[[Query], None]:
    """Decorator of a query whose rows go to a topic as JSON."""

    def declared(query: Query) -> None:
        name = f"{query.__name__}_sink"
        topic_sink(name, topic, **options)

        @dp.append_flow(target=name, name=query.__name__)
        def flow() -> DataFrame:
            return by_one_task(as_records(query(), [key] if key else []), options)

    return declared


def expect(name: str, condition: str) -> Callable[[Query], Query]:
    """Count the rows that break the condition, and keep them."""
    return _expected(Expectation(name, condition, Otherwise.KEEP), None)


def expect_or_drop(
    name: str, condition: str, *, dead_letters: str | None = None, **options: str
) -> Callable[[Query], Query]:
    """Drop and count the rows that break the condition; `dead_letters` names a topic for them, and
    `options` are those of the sink that writes them.
    """
    return _expected(Expectation(name, condition, Otherwise.DROP), dead_letters, options)


def expect_or_fail(name: str, condition: str) -> Callable[[Query], Query]:
    """End the run at the first row that breaks the condition."""
    return _expected(Expectation(name, condition, Otherwise.FAIL), None)


def _expected(
    expectation: Expectation, dead_letters: str | None, options: Mapping[str, str] | None = None
) -> Callable[[Query], Query]:
    def decorated(query: Query) -> Query:
        if not callable(query):
            raise ConfigError(
                f"expectation {expectation.name!r}: put it under @dp.table, next to the function"
            )
        if dead_letters is not None:
            check_repeatable(expectation.name, expectation.condition)
            name = f"{query.__name__}_{expectation.slug}"
            _to_dead_letters(
                name,
                dead_letters,
                lambda: dead_rows(
                    broken(query(), expectation), F.lit(expectation.reason), query.__name__
                ),
                options or {},
            )

        @functools.wraps(query)
        def checked() -> DataFrame:
            return (passed if _for_dead_letters.get() else enforced)(query(), expectation)

        return checked

    return decorated


def _to_dead_letters(name: str, topic: str, query: Query, options: Mapping[str, str]) -> None:
    sink = f"{name}_dead_letters"
    topic_sink(sink, topic, **options)

    @dp.append_flow(target=sink, name=f"{name}_to_dead_letters")
    def flow() -> DataFrame:
        token = _for_dead_letters.set(True)
        try:
            return query()
        finally:
            _for_dead_letters.reset(token)


def _session() -> SparkSession:
    return SparkSession.active()
