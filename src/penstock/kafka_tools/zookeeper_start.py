"""`zookeeper-server-start.sh [-daemon] zookeeper.properties`: starts a real ZooKeeper."""

import os
import shutil
import sys
from pathlib import Path

from penstock.kafka_tools.connection import read_properties
from penstock.kafka_tools.options import Table, flag, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.server_registry import StartedServer, remember
from penstock.kafka_tools.tool import Tool, ToolError

USAGE = "USAGE: zookeeper-server-start.sh [-daemon] zookeeper.properties"
JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC")
START_S = 30.0


def java(jars: str, main: str, *words: str) -> list[str]:
    """The command line that runs one of ZooKeeper's classes."""
    found = shutil.which("java")
    if found is None:
        raise ToolError("ZooKeeper needs Java 11 or later: apt-get install default-jre-headless")
    return [found, *JAVA_OPTIONS, "-cp", jars, main, *words]


def start(args: Arguments) -> int:
    from penstock.local.process import last_line, polls, start_time
    from penstock.local.process import start as start_process
    from penstock.local.zookeeper import MAIN, answers, classpath

    if not args.words:
        raise UsageError("")  # prints only the usage
    file = args.words[0]
    settings = read_properties(file, "zookeeper-server-start.sh")
    data = Path(settings.get("dataDir", "/tmp/zookeeper"))  # noqa: S108  Kafka's default
    data.mkdir(parents=True, exist_ok=True)
    command = java(classpath(), MAIN, file)
    if not args.has("daemon"):
        began = start_time(os.getpid()) or ""  # exec keeps pid and start time
        remember(StartedServer("zookeeper", str(data.absolute()), os.getpid(), began))
        sys.stdout.flush()
        # ZooKeeper replaces this process.
        return os.execv(command[0], command)  # noqa: S606
    output = data.absolute().with_name(f"{data.absolute().name}.out")
    process = start_process(command, output)
    remember(StartedServer("zookeeper", str(data.absolute()), process.pid, process.began))
    port = int(settings.get("clientPort", "2181"))
    for _ in polls(START_S):
        if answers(port):
            return 0
        if not process.is_alive():
            raise ToolError(f"ZooKeeper did not start: {last_line(output)} (see {output})")
    raise ToolError(f"ZooKeeper is not ready after {START_S:.0f} s: see {output}")


TOOL = Tool(
    Table(
        "zookeeper-server-start",
        USAGE,
        (
            flag("daemon", "Return when ZooKeeper is ready."),
            text("name", "NAME", "Accepted, without effect."),
            flag("loggc", "Accepted, without effect."),
        ),
    ),
    start,
    lambda error, _: f"{error}",
)
