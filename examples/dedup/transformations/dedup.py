"""Events by their id: the first of each within an hour goes on."""

from pyspark.sql import DataFrame

from penstock.spark.pipeline.define import to_topic, topic_source

events = topic_source(
    "events",
    format="json",
    schema="id string, at timestamp, amount int",
    group="dedup",
    dead_letters="events-dead",
)


@to_topic("events-once", key="id")
def events_once() -> DataFrame:
    return events().withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"])
