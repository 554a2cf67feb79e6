"""The settings of a pipeline's Spark: our defaults, the project's, the caller's; the last wins."""

import os
import sys
from collections.abc import Iterable, Mapping

from penstock.errors import ConfigError

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.streaming.stopTimeout": "30000",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Between the JVM and its Python workers: less to copy than through loopback TCP.
    "spark.python.unix.domain.socket.enabled": "true",
}
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""For a driver whose executors are on this machine: nobody else needs to reach it."""

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "4",
}
"""Without the first two Delta refuses to write, even to a path. By itself it cuts the list of a
table's files into 50 tasks, which take longer than the writing of a small micro-batch.
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


def catalog_settings(storage: str, *, remembers: bool) -> dict[str, str]:
    """Where tables lie; and a catalog that remembers them from run to run, where there are any:
    Spark's own default forgets them, and would then find their files in the way.
    """
    folder = storage.rstrip("/")
    settings = {"spark.sql.warehouse.dir": f"{folder}/warehouse"}
    if remembers:
        settings["spark.sql.catalogImplementation"] = "hive"
    if remembers and folder.startswith("file://"):
        here = folder.removeprefix("file://")
        database = f"jdbc:derby:;databaseName={here}/catalog;create=true"
        settings["spark.hadoop.javax.jdo.option.ConnectionURL"] = database
        # Derby would write it to whatever folder the caller stands in.
        log = f'"-Dderby.stream.error.file={here}/derby.log"'
        settings["spark.driver.defaultJavaOptions"] = log
    return settings


def is_local(master: str) -> bool:
    return master.startswith(("local", "spark://127.0.0.1:", "spark://localhost:"))


def pairs(given: Iterable[str], option: str) -> dict[str, str]:
    """What `--conf name=value` said."""
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise ConfigError(f"{option} {each}: not NAME=VALUE")
        found[name] = value
    return found


def worker_environment() -> dict[str, str]:
    """What Spark's Python workers on this machine need in order to import what we import."""
    path = [*(each for each in sys.path if each), *os.environ.get("PYTHONPATH", "").split(":")]
    return {
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", sys.executable),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, path))),
    }


def elsewhere_environment() -> dict[str, str]:
    """The same where executors have a Python of their own, at a path of their own.

    Spark runs one command everywhere, so it is a name: here it means this Python, there theirs.
    It also hands our PYTHONPATH to executors, before theirs. So no folder of this machine goes in:
    another machine may have one of that name, with other versions.
    """
    folder = os.path.dirname(sys.executable)  # noqa: PTH120 - a link is not followed
    python = os.environ.get("PYSPARK_PYTHON", f"python3.{sys.version_info.minor}")
    return {
        "PATH": os.pathsep.join(filter(None, [folder, os.environ.get("PATH", "")])),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,  # by which Spark runs sources and sinks, on executors too
    }
