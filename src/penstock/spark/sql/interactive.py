"""A Spark session on this machine for a question or a shell, with topics in a line."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession, functions

from penstock.spark.pipeline.settings import spark_settings, worker_environment
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
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(settings.get("spark.log.level", "OFF"))
    try:
        yield spark
    finally:
        spark.stop()


def records(
    spark: SparkSession, bootstrap: str, topic: str, *, follow: bool, **options: str
) -> DataFrame:
    """A topic's records: those that are there, or following them, all that come as well."""
    reader = spark.readStream if follow else spark.read
    made = reader.format("penstock").option(BOOTSTRAP, bootstrap)
    return made.options(**{"subscribe": topic, "startingOffsets": "earliest", **options}).load()


def names(spark: SparkSession, bootstrap: str) -> dict[str, object]:
    """What a shell starts with."""

    def topic(name: str, **options: str) -> DataFrame:
        found = records(spark, bootstrap, name, follow=False, **options)
        return as_table(found, inferred(found))

    def stream(name: str, **options: str) -> DataFrame:
        looked_at = records(spark, bootstrap, name, follow=False)
        found = records(spark, bootstrap, name, follow=True, **options)
        return as_table(found, inferred(looked_at))

    return {"spark": spark, "topic": topic, "stream": stream, "F": functions}
