"""A topic read by the executors of a cluster, which get penstock only from an archive.

`python -m support.spark.cluster_read MASTER BOOTSTRAP ARCHIVE` prints a JSON object: the rows, and
where they were read.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from peers.spark_session import QUICK
from penstock.spark.pipeline.pack import archive_settings


def places(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Which Python a task runs, and where it imports penstock from."""
    import penstock

    for _ in batches:
        found = [json.dumps([sys.prefix, penstock.__file__])]
        yield pa.RecordBatch.from_pydict({"place": found})


def main(master: str, bootstrap: str, archive: str) -> None:
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # both executors, from the start
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **QUICK,
        **archive_settings(Path(archive)),
    }
    spark = SparkSession.builder.master(master).config(map={**settings}).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    read = spark.read.format("penstock").option("subscribe", "events")
    rows = read.option("kafka.bootstrap.servers", bootstrap).load().cache()
    found = rows.selectExpr("partition", "offset", "cast(value as string)").collect()
    seen = {row[0] for row in rows.mapInArrow(places, "place string").collect()}
    print(json.dumps({"rows": sorted(found), "places": [json.loads(each) for each in seen]}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
