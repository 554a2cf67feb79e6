"""A Spark session on this machine, with Spark's own Kafka connector beside our source."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from peers.jars import folder
from peers.spark import SHORT_LIVED

SOURCE = Path(__file__).parents[2] / "src"
CONNECTOR = "spark-kafka-4.2.0"
_NEEDED = ("spark-sql-kafka-0-10", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
QUICK = {f"spark.{each}.extraJavaOptions": SHORT_LIVED for each in ("driver", "executor")}


def connector_jars() -> list[Path]:
    """Those that Spark does not bring itself: two versions of one class would not get on."""
    return [
        path for path in sorted(folder(CONNECTOR).glob("*.jar")) if path.name.startswith(_NEEDED)
    ]


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
        "spark.jars": ",".join(map(str, connector_jars())),
        **(settings or {}),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()
