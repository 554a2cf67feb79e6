"""Requests, errors, p95 and bytes of each minute, and the requests of each page in it.

Lines that are no access-log lines, and requests with an impossible status, go to a dead-letter
topic together with the reason.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.spark.pipeline.define import expect_or_drop, to_topic, topic_source

LATE = "30 seconds"
DEAD_LETTERS = "access-log-dead"

access_log = topic_source(
    "access-log", format="access-log", group="access-log-analytics", dead_letters=DEAD_LETTERS
)


@expect_or_drop("known status", "status between 100 and 599", dead_letters=DEAD_LETTERS)
def requests() -> DataFrame:
    return access_log()


def per_minute(rows: DataFrame, *columns: str) -> DataFrame:
    """Figures of each minute, and of each value of the columns in it, once the minute is over."""
    return (
        rows.withWatermark("at", LATE)
        .groupBy(F.window("at", "1 minute").alias("minute"), *columns)
        .agg(
            F.count(F.lit(1)).alias("requests"),
            F.count_if(F.col("status") >= 500).alias("errors"),
            F.round(F.percentile_approx("seconds", 0.95, 1000), 3).alias("p95_seconds"),
            F.sum("bytes").alias("bytes"),
        )
        .withColumn("minute", F.date_format("minute.start", "yyyy-MM-dd HH:mm"))
    )


@to_topic("access-log-minutes", key="minute")
def minutes() -> DataFrame:
    return per_minute(requests())


@to_topic("access-log-pages", key="path")
def pages() -> DataFrame:
    return per_minute(requests(), "path")
