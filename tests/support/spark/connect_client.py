"""What a Spark Connect client does with topics; only the server has penstock.

`python -m support.spark.connect_client URL BOOTSTRAP FOLDER` prints the rows of `events`, writes
them to `events-written`, and copies the topic to `events-copied` exactly once.
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

TEXT = ("partition", "offset", "cast(value as string)")


def main(url: str, bootstrap: str, folder: str) -> None:
    sys.modules["penstock"] = None  # type: ignore[assignment]  # from here on nobody imports it
    spark = SparkSession.builder.remote(url).getOrCreate()
    topics = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.read.format("penstock").options(**topics, subscribe="events").load()
    print(json.dumps(sorted(rows.selectExpr(*TEXT).collect())))
    written = rows.select("key", "value").write.format("penstock").mode("append")
    written.options(**topics, topic="events-written").save()
    source: dict[str, Any] = {"subscribe": "events", "startingOffsets": "earliest"}
    read = spark.readStream.format("penstock").options(**topics, **source, groupId="copy")
    copied = read.load().select("key", "value", "partition", "offset").writeStream
    query = (
        copied.format("penstock")
        .options(**topics, topic="events-copied", transactional="true")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
