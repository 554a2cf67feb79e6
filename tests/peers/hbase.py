"""A real HBase on loopback, in a folder of its own: master and Thrift server, each in a JVM."""

import os
from pathlib import Path

from peers.jars import classpath, program
from peers.process import Process, free_ports
from peers.servers import Servers

JARS = "hbase-2.6.1"
LOGGING = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %c: %m%n
log4j.logger.org.apache.hadoop.hbase.master.HMaster=INFO
log4j.logger.org.apache.hadoop.hbase.thrift.ThriftServer=INFO
"""


class HBase(Servers):
    """`with HBase() as hbase: hbase.url`; server 0 is the master with its region server and
    ZooKeeper, server 1 the Thrift server.
    """

    def __init__(self, folder: Path | None = None, timeout_s: float = 180) -> None:
        super().__init__(folder, timeout_s)
        self._zookeeper, self._thrift = free_ports(2)

    @property
    def url(self) -> str:
        return f"hbase://127.0.0.1:{self._thrift}"

    def _answers(self, number: int) -> bool:
        said = self.output(number).read_text(errors="replace")
        return ("Master has completed initialization", "starting HBase")[number] in said

    def start(self, *numbers: int) -> None:
        for number in numbers:  # the Thrift server needs a master
            super().start(number)

    def _prepared(self) -> dict[int, Process]:
        root = self.folder / "hbase"
        conf = root / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        (conf / "log4j.properties").write_text(LOGGING)
        (conf / "hbase-site.xml").write_text(self._site(root))
        opened = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in ("java.lang", "java.nio")]
        java = [program("java"), "-Xmx512m", *opened]
        java += ["-cp", f"{conf}{os.pathsep}{classpath(JARS)}"]
        thrift = ["-b", "127.0.0.1", "-p", str(self._thrift), "start"]
        commands = {
            0: ["org.apache.hadoop.hbase.master.HMaster", "start"],
            1: ["org.apache.hadoop.hbase.thrift.ThriftServer", *thrift],
        }
        processes = {}
        for number, command in commands.items():
            folder = root / str(number)
            folder.mkdir(exist_ok=True)
            processes[number] = Process("HBase", [*java, *command], folder)
        return processes

    def _site(self, root: Path) -> str:
        settings = {
            "hbase.rootdir": f"file://{root}/data",
            "hbase.tmp.dir": f"{root}/tmp",
            "hbase.unsafe.stream.capability.enforce": "false",
            "hbase.zookeeper.quorum": "127.0.0.1",
            "hbase.zookeeper.property.dataDir": f"{root}/zookeeper",
            "hbase.zookeeper.property.clientPort": self._zookeeper,
            "hbase.zookeeper.property.clientPortAddress": "127.0.0.1",
            "hbase.thrift.info.port": -1,
        }
        for each in ("master", "regionserver"):
            settings |= {
                f"hbase.{each}.port": 0,
                f"hbase.{each}.info.port": -1,
                f"hbase.{each}.hostname": "localhost",
                f"hbase.{each}.ipc.address": "127.0.0.1",
            }
        rows = (
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in settings.items()
        )
        return f"<configuration>{''.join(rows)}</configuration>\n"
