"""Local Spark sessions, with Spark's own connectors beside our source.

One JVM serves a process to its end, with the jars that it started with. So every session of a test
process is made here, and `only_here` refuses any other: what a test finds in Spark does not depend
on the tests before it. A program with its own Spark runs in a separate process.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from peers.spark import SHORT_LIVED
from peers.spark_jars import spark_jars
from penstock.spark.worker_python import worker_python

SOURCE = Path(__file__).parents[2] / "src"
QUICK = {f"spark.{each}.extraJavaOptions": SHORT_LIVED for each in ("driver", "executor")}
_making: list[bool] = []
"""Not empty while `spark_session` makes a session."""


@contextmanager
def spark_session(
    work: Path, *, cores: int = 2, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    # Workers import the same package as the tests.
    path = [str(SOURCE), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    with _environment(
        PYSPARK_PYTHON=worker_python(),
        PYTHONPATH=os.pathsep.join(dict.fromkeys(filter(None, path))),
        SPARK_LOCAL_IP="127.0.0.1",
    ):
        _making.append(True)
        try:
            _ensure_jvm()
            spark = _session(work, cores, settings or {})
        finally:
            _making.pop()
        try:
            yield spark
        finally:
            spark.stop()


def only_here() -> None:
    """From now on, Spark contexts of this process that are made elsewhere fail."""
    make: Any = SparkContext.__init__
    if hasattr(make, "__wrapped__"):
        return

    def made(context: SparkContext, *args: Any, **named: Any) -> None:
        if not _making:
            raise AssertionError(
                "a test process has one JVM: make its Spark sessions with peers.spark_session,"
                " or start the program that makes its own in a process of its own"
            )
        make(context, *args, **named)

    made.__wrapped__ = make  # type: ignore[attr-defined]
    SparkContext.__init__ = made  # type: ignore[method-assign, assignment]


def _ensure_jvm() -> None:
    """Starts the JVM with the same settings, whichever test is first: all later sessions inherit
    them.
    """
    if SparkContext._gateway is None:
        conf = SparkConf(loadDefaults=False)
        conf.setAll([*QUICK.items(), ("spark.driver.memory", "1g"), ("spark.jars", spark_jars())])
        SparkContext._ensure_initialized(conf=conf)


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Sets variables for a while: what later tests start must not find the Python and the folders
    of this test, nor what Spark itself adds.
    """
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def _session(work: Path, cores: int, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.master(f"local[{cores}]").appName("penstock")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.sql.streaming.stopTimeout": "60000",
        **settings,
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark
