"""`kafka-server-start.sh [-daemon] server.properties [--override name=value]`: starts a broker."""

import os
import subprocess
import sys
from pathlib import Path

from penstock.kafka_tools.connection import read_properties
from penstock.kafka_tools.options import Table, flag, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.server_registry import RUN_DIR, StartedServer, remember
from penstock.kafka_tools.storage import log_directories
from penstock.kafka_tools.tool import Tool, ToolError

USAGE = "USAGE: kafka-server-start.sh [-daemon] server.properties [--override property=value]*"


def start(args: Arguments) -> int:
    if not args.words:
        raise UsageError("")  # prints only the usage
    file = args.words[0]
    settings = read_properties(file, "kafka-server-start.sh")
    overrides = args.all("override")
    for pair in overrides:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--override {pair}: must be property=value")
        settings[name] = value
    directory = state_directory(log_directories(settings)[0])
    serve = [sys.executable, "-P", "-m", "penstock", "serve"]
    serve += [str(Path(file)), "--dir", str(directory)]
    for pair in overrides:
        serve += ["--set", pair]
    remember(StartedServer("broker", str(directory)))
    os.environ.pop(RUN_DIR, None)  # the broker would read it as a setting
    if args.has("daemon"):
        done = subprocess.run([*serve, "--daemon"], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise ToolError(f"the broker did not start: see {directory}")
        return 0
    sys.stdout.flush()
    # The broker replaces this process.
    return os.execv(sys.executable, serve)  # noqa: S606


def state_directory(logs: Path) -> Path:
    """The data directory for a log directory. It is beside the logs, because Kafka refuses folders
    in a log directory that are not partitions.
    """
    return logs.absolute().with_name(f"{logs.absolute().name}.state")


TOOL = Tool(
    Table(
        "kafka-server-start",
        USAGE,
        (
            flag("daemon", "Return when the broker is ready."),
            text("name", "NAME", "Accepted, without effect."),
            flag("loggc", "Accepted, without effect."),
            text("override", "NAME=VALUE", "A setting; wins over the file.", repeats=True),
        ),
    ),
    start,
    lambda error, _: f"{error}",
)
