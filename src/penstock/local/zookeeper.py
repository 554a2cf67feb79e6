"""Runs a local ZooKeeper from jars in the cache, Debian's package, or PySpark's jars."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from penstock.errors import ConfigError

MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
TICK_MS = 500
"""Session timeouts are at least two ticks."""


def command(folder: Path, port: int) -> list[str]:
    """Write the server's settings; returns the command line that starts it."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    config = folder / "zoo.cfg"
    config.write_text(
        f"dataDir={data.absolute()}\n"
        "clientPortAddress=127.0.0.1\n"
        f"clientPort={port}\n"
        f"tickTime={TICK_MS}\n"
        "maxSessionTimeout=60000\n"
        "maxClientCnxns=0\n"
        "admin.enableServer=false\n"
        "4lw.commands.whitelist=srvr\n"
    )
    java = shutil.which("java")
    if java is None:
        raise ConfigError("ZooKeeper needs Java 11 or later: apt-get install default-jre-headless")
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [java, *options, "-cp", classpath(), MAIN, str(config)]


def classpath() -> str:
    """The classpath of ZooKeeper's server, from the first place that has it."""
    for found in _classpaths():
        return found
    raise ConfigError(
        "no ZooKeeper is installed here: apt-get install zookeeper, or pip install pyspark, which "
        "brings one, or name a running one with --zookeeper host:port"
    )


def shell_classpath() -> str:
    """The classpath for ZooKeeper's shell, which needs more jars than the server:
    all places together.
    """
    return os.pathsep.join([classpath(), *_classpaths()])


def _classpaths() -> Iterator[str]:
    if given := os.environ.get("PENSTOCK_ZOOKEEPER_CLASSPATH"):
        yield given
    cache = os.environ.get("PENSTOCK_CACHE") or os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if cache else Path.home() / ".cache"
    folder = base if "PENSTOCK_CACHE" in os.environ else base / "penstock"
    for jars in sorted((folder / "peers" / "jars").glob("zookeeper-*"), reverse=True):
        if jars.suffix != ".part":
            yield str(jars / "*")
    debian = Path("/usr/share/java")
    if (debian / "zookeeper.jar").exists():
        yield f"/etc/zookeeper/conf:{debian / 'zookeeper.jar'}:{debian}/*"
    pyspark = find_spec("pyspark")  # not imported; it includes all the jars needed
    if pyspark is not None and pyspark.origin is not None:
        jars = Path(pyspark.origin).parent / "jars"
        if any(jars.glob("zookeeper-*.jar")):
            yield str(jars / "*")


def answers(port: int) -> bool:
    """Whether the server serves requests; it may accept connections before it does."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
        connection.sendall(b"srvr")
        return b"Mode: " in connection.recv(4096)
    return False
