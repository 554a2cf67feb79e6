"""A Spark session on this machine, with Spark's own connectors beside our source."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from peers.spark import SHORT_LIVED
from peers.spark_jars import spark_jars

SOURCE = Path(__file__).parents[2] / "src"
QUICK = {f"spark.{each}.extraJavaOptions": SHORT_LIVED for each in ("driver", "executor")}


@contextmanager
def spark_session(
    work: Path, *, cores: int = 2, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """One JVM serves a process to its end, so `settings` of the JVM are those of the first call."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Workers import the package that the tests do.
    path = [str(SOURCE), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, path)))
    builder = SparkSession.builder.master(f"local[{cores}]").appName("penstock")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.sql.streaming.stopTimeout": "60000",
        "spark.jars": spark_jars(),
        **(settings or {}),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()
