"""Visits: what a user did until a silence of ten minutes."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.spark.pipeline.define import to_topic, topic_source

activity = topic_source(
    "activity",
    format="json",
    schema="user string, page string, at timestamp",
    group="user-sessions",
    dead_letters="activity-dead",
)


@to_topic("sessions", key="user")
def sessions() -> DataFrame:
    visit = F.session_window("at", "10 minutes")
    return (
        activity()
        .withWatermark("at", "5 minutes")
        .groupBy("user", visit.alias("visit"))
        .agg(F.count(F.lit(1)).alias("pages"), F.min_by("page", "at").alias("entered_at"))
        .select(
            "user",
            F.col("visit.start").alias("began"),
            (F.col("visit.end") - F.expr("interval 10 minutes")).alias("ended"),
            "pages",
            "entered_at",
        )
    )
