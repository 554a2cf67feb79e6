"""A query for fault tests, in a separate process: it writes files of ids to a topic, exactly once.

`python -m support.spark.spark_job MASTER BOOTSTRAP FOLDER [key=value ...]`. It restarts the query
after each failure until every file is written; the errors go to FOLDER/failures.
"""

import sys
import uuid
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from peers.spark_session import QUICK
from support.spark.spark_faults import Faulty

PARTITIONS = 4
RESTARTS = 40
SCHEMA = "id bigint, part int"


def session(master: str) -> SparkSession:
    made = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", PARTITIONS)
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.task.maxFailures", "4")
        .config("spark.executor.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config(map={**QUICK})
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    return made


def rows(spark: SparkSession, folder: Path, *, repeatable: bool) -> DataFrame:
    """Each file is a micro-batch; rows reach their tasks over two shuffles, in any order."""
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    text = F.col("id").cast("string")
    if not repeatable:
        # Spark's own uuid() would repeat its values: its seed is part of the plan.
        chance = F.udf(lambda: uuid.uuid4().hex, "string").asNondeterministic()
        text = F.concat_ws(" ", text, chance())
    return (
        read.json(str(folder / "input"))
        .repartition(3, "id")
        .repartitionById(PARTITIONS, F.col("part"))
        .select(
            text.alias("value"),
            F.col("id").cast("string").alias("key"),
            F.col("part").alias("partition"),
            F.col("id").alias("offset"),
        )
    )


def main(master: str, bootstrap: str, folder: Path, options: dict[str, str]) -> None:
    spark = session(master)
    spark.dataSource.register(Faulty)
    repeatable = options.pop("repeatable", "true") == "true"
    for _ in range(RESTARTS):
        query = (
            rows(spark, folder, repeatable=repeatable)
            .writeStream.format("faulty")
            .option("faults", str(folder / "faults"))
            .option("kafka.bootstrap.servers", bootstrap)
            .option("kafka.batch.size", 400)
            .option("topic", "out")
            .option("transactional", "true")
            .options(**options)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except StreamingQueryException as failed:
            with (folder / "failures").open("a") as file:
                file.write(f"{failed}\n----\n")
        else:
            print("done", flush=True)
            return
    raise SystemExit("the query failed too often")


if __name__ == "__main__":
    main(
        sys.argv[1],
        sys.argv[2],
        Path(sys.argv[3]),
        dict(each.split("=", 1) for each in sys.argv[4:]),
    )
