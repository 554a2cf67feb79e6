"""Spark's settings of a pipeline: our defaults, the project's, the caller's; the last wins."""

import os
import sys
from collections.abc import Iterable, Mapping

from penstock.errors import ConfigError
from penstock.spark.worker_python import worker_python

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.streaming.stopTimeout": "30000",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Between the JVM and its Python workers: fewer copies than over loopback TCP.
    "spark.python.unix.domain.socket.enabled": "true",
}
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""For a driver whose executors are on this machine, so that no other machine can reach it."""

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "4",
}
"""Without the first two Delta refuses to write, even to a path. By default it divides the list of a
table's files into 50 tasks, which take longer than writing a small micro-batch.
"""
DELTA_JAR = "io.delta:delta-spark_4.2_2.13:4.4.0"


def spark_settings(
    name: str, master: str, configuration: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    here = LOOPBACK if is_local(master) else {}
    return {
        **DEFAULTS,
        **here,
        "spark.app.name": name,
        **configuration,
        **given,
        "spark.master": master,
    }


def catalog_settings(storage: str, *, persistent: bool) -> dict[str, str]:
    """Where tables are stored and, if there are any, a catalog that persists between runs. Spark's
    default catalog forgets tables, and then fails because of their files.
    """
    folder = storage.rstrip("/")
    settings = {"spark.sql.warehouse.dir": f"{folder}/warehouse"}
    if persistent:
        settings["spark.sql.catalogImplementation"] = "hive"
    if persistent and folder.startswith("file://"):
        here = folder.removeprefix("file://")
        database = f"jdbc:derby:;databaseName={here}/catalog;create=true"
        settings["spark.hadoop.javax.jdo.option.ConnectionURL"] = database
        # Derby would write it to the current directory.
        log = f'"-Dderby.stream.error.file={here}/derby.log"'
        settings["spark.driver.defaultJavaOptions"] = log
    return settings


def is_local(master: str) -> bool:
    return master.startswith(("local", "spark://127.0.0.1:", "spark://localhost:"))


def pairs(given: Iterable[str], option: str) -> dict[str, str]:
    """The pairs of repeated `--conf name=value`."""
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise ConfigError(f"{option} {each}: not NAME=VALUE")
        found[name] = value
    return found


def worker_environment() -> dict[str, str]:
    """The environment in which Python workers on this machine import what we import."""
    path = [*(each for each in sys.path if each), *os.environ.get("PYTHONPATH", "").split(":")]
    python = worker_python()
    return {
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", python),
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", python),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, path))),
    }


def elsewhere_environment() -> dict[str, str]:
    """The environment for executors that have a Python of their own, at another path.

    Spark runs one command in the driver and in executors, since it plans reads in a Python beside
    the driver. So the command is a name, which means this Python here and theirs there. Spark also
    puts our PYTHONPATH before that of executors. So it has no folder of this machine: another one
    may have a folder of that name, with other versions.
    """
    folder = os.path.dirname(sys.executable)  # noqa: PTH120 - a link is not followed
    python = os.environ.get("PYSPARK_PYTHON", f"python3.{sys.version_info.minor}")
    return {
        "PATH": os.pathsep.join(filter(None, [folder, os.environ.get("PATH", "")])),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,  # Spark runs sources and sinks with it, on executors too
    }
