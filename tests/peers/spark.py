"""Spark's own servers on loopback: a cluster in standalone mode, and a Connect server."""

import os
import sys
from pathlib import Path

import pyspark

from peers import archive
from peers.process import Process, free_ports
from peers.servers import Servers
from penstock.spark.worker_python import worker_python

HOME = Path(pyspark.__file__).parent
SOURCE = Path(__file__).parents[2] / "src"
CLASSES = archive.made_of(HOME / "jars", Path(sys.prefix, "spark"))
"""In the Python environment, like the jars, because an archive depends on their paths;
`peers.spark_archive` makes it. Driver, servers and executors have one class path, so it serves them
all.
"""
_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *archive.use(CLASSES)]
SHORT_LIVED = " ".join(f'"{each}"' for each in _OPTIONS)
"""Options of a JVM that lives a minute or two."""
MASTER = 0
"""The master's number; workers are numbered from 1."""


class SparkCluster(Servers):
    """`with SparkCluster(2) as spark: spark.master`; each worker has one core, so one executor.

    With `python`, a folder, workers find no Python but the one in that folder.
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        python_path: str = "",
        python: Path | None = None,
        folder: Path | None = None,
        timeout_s: float = 60,
    ) -> None:
        super().__init__(folder, timeout_s)
        self._workers, self._python_path, self._python = workers, python_path, python
        (self._port,) = free_ports(1)

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def _answers(self, number: int) -> bool:
        said = self.output(number).read_text(errors="replace")
        if number == MASTER:
            return "New state: ALIVE" in said
        return "Successfully registered with master" in said

    def _prepared(self) -> dict[int, Process]:
        master = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0"]
        made = {MASTER: self._process("master", "master.Master", master)}
        for number in range(1, self._workers + 1):
            options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1"]
            options += ["--memory", "1g", "--work-dir", str(self.folder / f"work-{number}")]
            made[number] = self._process(
                f"worker-{number}", "worker.Worker", [*options, self.master]
            )
        return made

    def _process(self, name: str, main: str, options: list[str]) -> Process:
        if self._python is None:
            path = self._python_path or os.environ.get("PYTHONPATH", "")
            env = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}
        else:
            folders = f"{self._python}{os.pathsep}{os.environ['PATH']}"
            env = {"PATH": folders, "PYTHONPATH": ""}
        env["SPARK_DAEMON_MEMORY"] = "256m"
        command = ["spark-class", f"org.apache.spark.deploy.{main}", *options]
        return _server(f"Spark {name}", command, env, self.folder / name)


class SparkConnect(Servers):
    """`with SparkConnect() as connect: connect.url`; it is its own driver and executor."""

    def __init__(
        self, *settings: str, cores: int = 2, folder: Path | None = None, timeout_s: float = 60
    ) -> None:
        super().__init__(folder, timeout_s)
        self._settings, self._cores = settings, cores
        (self._port,) = free_ports(1)

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self._port}"

    def _answers(self, number: int) -> bool:
        said = self.output(number).read_text(errors="replace")
        return "Spark Connect server started" in said

    def _prepared(self) -> dict[int, Process]:
        options = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        options += ["--master", f"local[{self._cores}]"]
        for each in (
            "spark.connect.grpc.binding.address=127.0.0.1",
            f"spark.connect.grpc.binding.port={self._port}",
            f"spark.driver.extraJavaOptions={SHORT_LIVED}",
            "spark.driver.host=127.0.0.1",
            "spark.ui.enabled=false",
            "spark.sql.shuffle.partitions=2",
            f"spark.sql.warehouse.dir={self.folder / 'warehouse'}",
            *self._settings,
        ):
            options += ["--conf", each]
        env = {
            "SPARK_DAEMON_MEMORY": "1g",
            "PYSPARK_PYTHON": worker_python(),
            "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]),
        }
        folder = self.folder / "connect"
        return {0: _server("Spark Connect", ["spark-submit", *options], env, folder)}


def _server(name: str, command: list[str], given: dict[str, str], folder: Path) -> Process:
    folder.mkdir(parents=True, exist_ok=True)
    env = {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
        **given,
    }
    words = ["env", *(f"{key}={value}" for key, value in env.items())]
    return Process(name, [*words, str(HOME / "bin" / command[0]), *command[1:]], folder)
