"""A real Spark cluster in standalone mode: a master and its workers, on loopback."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from peers.process import Process, free_ports
from peers.servers import Servers

HOME = Path(pyspark.__file__).parent
MASTER = 0
"""Its number; workers are numbered from 1."""


class SparkCluster(Servers):
    """`with SparkCluster(2) as spark: spark.master`; each worker has one core, so one executor."""

    def __init__(
        self,
        workers: int = 2,
        *,
        python_path: str = "",
        folder: Path | None = None,
        timeout_s: float = 60,
    ) -> None:
        super().__init__(folder, timeout_s)
        self._workers, self._python_path = workers, python_path
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
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        env: Mapping[str, str] = {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": self._python_path or os.environ.get("PYTHONPATH", ""),
        }
        command = ["env", *(f"{key}={value}" for key, value in env.items())]
        command += [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", *options]
        return Process(f"Spark {name}", command, folder)
