"""Load of hosts by the minute; a minute that is too busy becomes an alert."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.spark.pipeline.define import to_topic, topic_source

BUSY = 0.9

metrics = topic_source(
    "metrics",
    format="csv",
    schema="host string, at timestamp, cpu double",
    group="host-metrics",
    dead_letters="metrics-dead",
)


def by_minute(rows: DataFrame) -> DataFrame:
    return (
        rows.withWatermark("at", "1 minute")
        .groupBy("host", F.window("at", "1 minute").alias("minute"))
        .agg(F.round(F.avg("cpu"), 3).alias("cpu"), F.max("cpu").alias("peak"))
        .select("host", F.col("minute.start").alias("minute"), "cpu", "peak")
    )


@to_topic("metrics-minutes", key="host")
def minutes() -> DataFrame:
    return by_minute(metrics())


@to_topic("alerts", key="host")
def alerts() -> DataFrame:
    is_busy = F.col("cpu") > BUSY
    text = F.format_string("%s was busy: %.0f %% of its CPU", "host", F.col("cpu") * 100)
    return by_minute(metrics()).where(is_busy).withColumn("text", text)
