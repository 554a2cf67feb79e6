"""A real HDFS on loopback: a name node and a data node in one JVM, from Hadoop's own test kit."""

import shutil
from pathlib import Path

from peers import java
from peers.process import Process, free_ports
from peers.servers import Servers

JARS = "hadoop-3.5.0"


class Hdfs(Servers):
    """`with Hdfs() as hdfs: hdfs.url`; every user may write."""

    def __init__(self, folder: Path | None = None, timeout_s: float = 90) -> None:
        super().__init__(folder, timeout_s)
        self._port, self._http_port = free_ports(2)

    @property
    def url(self) -> str:
        return f"hdfs://127.0.0.1:{self._port}"

    def _answers(self, number: int) -> bool:
        return "Started MiniDFSCluster" in self.output(number).read_text(errors="replace")

    def _prepared(self) -> dict[int, Process]:
        folder = self.folder / "hdfs"
        folder.mkdir(parents=True, exist_ok=True)
        options = ["-format", "-datanodes", "1", "-nnport", str(self._port)]
        options += ["-httpport", str(self._http_port), "-D", "dfs.permissions.enabled=false"]
        # By default it keeps its blocks under the working directory.
        jvm = [f"-Dtest.build.data={folder / 'data'}", f"-Djava.io.tmpdir={folder}"]
        command = java.command(
            JARS,
            "org.apache.hadoop.test.MiniDFSClusterManager",
            *options,
            jvm=jvm,
            log_level="INFO",
        )
        shutil.rmtree(folder / "data", ignore_errors=True)
        return {0: Process("HDFS", command, folder)}
