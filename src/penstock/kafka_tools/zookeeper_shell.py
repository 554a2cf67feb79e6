"""`zookeeper-shell.sh host:port[/path] [command …]`: ZooKeeper's own command line."""

import os
import sys
from collections.abc import Sequence

from penstock.kafka_tools.options import Table
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool

MAIN = "org.apache.zookeeper.ZooKeeperMain"
USAGE = "USAGE: zookeeper-shell.sh zookeeper_host:port[/path] [-zk-tls-config-file file] [args...]"


def shell(words: Sequence[str]) -> int:
    """Pass everything after the address to ZooKeeper's shell, which replaces this process."""
    from penstock.kafka_tools.zookeeper_start import java
    from penstock.local.zookeeper import shell_classpath

    if not words or words[0].startswith("-"):
        raise UsageError("")  # prints only the usage
    command = java(shell_classpath(), MAIN, "-server", *words)
    sys.stdout.flush()
    return os.execv(command[0], command)  # noqa: S606


def no_words(_args: Arguments) -> int:
    raise UsageError("")  # prints only the usage


TOOL = Tool(Table("zookeeper-shell", USAGE, ()), no_words)
