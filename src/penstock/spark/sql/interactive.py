"""A Spark session on this machine for a query or a shell, with topics as DataFrames."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions

from penstock.spark.avro.schema_file import schema_text
from penstock.spark.pipeline.quiet import quiet_end, quiet_start
from penstock.spark.pipeline.settings import spark_settings, worker_environment
from penstock.spark.pipeline.topic_options import READ_TOPIC
from penstock.spark.pipeline.value_format import ValueFormat, source_options
from penstock.spark.sql.topic_view import as_table, inferred

BOOTSTRAP = "kafka.bootstrap.servers"


@contextmanager
def session(name: str, master: str, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    os.environ.update(worker_environment())
    settings = spark_settings(name, master, {}, conf)
    if settings.get("spark.driver.host") == "127.0.0.1":
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    with quiet_start(settings):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(settings.get("spark.log.level", "OFF"))
    try:
        yield spark
    finally:
        quiet_end(spark.sparkContext)
        spark.stop()


def records(
    spark: SparkSession, bootstrap: str, topic: str, *, follow: bool, **options: str
) -> DataFrame:
    """A topic's committed records: those there now or, with `follow`, also all that come."""
    reader = spark.readStream if follow else spark.read
    made = reader.format("penstock").option(BOOTSTRAP, bootstrap)
    return made.options(**{**READ_TOPIC, "subscribe": topic, **options}).load()


def names(spark: SparkSession, bootstrap: str) -> dict[str, object]:
    """The names that a shell starts with."""

    def table(
        name: str, values: str | None, schema: str | None, options: dict[str, str], *, follow: bool
    ) -> DataFrame:
        if values is not None:
            value_format = ValueFormat(values, schema and schema_text(schema, Path()))
        else:
            value_format = inferred(records(spark, bootstrap, name, follow=False))
        options = {**source_options(value_format), **options}
        return as_table(records(spark, bootstrap, name, follow=follow, **options), value_format)

    def topic(
        name: str, values: str | None = None, schema: str | None = None, **options: str
    ) -> DataFrame:
        return table(name, values, schema, options, follow=False)

    def stream(
        name: str, values: str | None = None, schema: str | None = None, **options: str
    ) -> DataFrame:
        return table(name, values, schema, options, follow=True)

    return {"spark": spark, "topic": topic, "stream": stream, "F": functions}
