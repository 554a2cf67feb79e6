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
    # Workers import the package that the tests do.
    path = [str(SOURCE), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    with _environment(
        PYSPARK_PYTHON=sys.executable,
        PYTHONPATH=os.pathsep.join(dict.fromkeys(filter(None, path))),
        SPARK_LOCAL_IP="127.0.0.1",
    ):
        spark = _session(work, cores, settings or {})
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """For a while: what later tests start must not find the Python and the folders of this one."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _session(work: Path, cores: int, settings: Mapping[str, str]) -> SparkSession:
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
        **settings,
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark
