"""Runs Java with a named jar set: single source files of `tests/peers/java`, or main classes."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from peers import archive
from peers.jars import cache, classpath, folder, program
from peers.lines import LineProcess
from peers.process import PeerError

SOURCES = Path(__file__).with_name("java")

Profile = Literal["test", "bench"]
"""How a JVM is tuned: to start quickly, or as Kafka's own scripts tune a broker."""

_JVM: dict[Profile, list[str]] = {
    "test": ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
    "bench": [
        "-Xmx1G",
        "-Xms1G",
        "-server",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        "-XX:InitiatingHeapOccupancyPercent=35",
        "-XX:+ExplicitGCInvokesConcurrent",
        "-Djava.awt.headless=true",
    ],
}


def command(
    jars: str,
    main: str,
    *args: str,
    profile: Profile = "test",
    jvm: Sequence[str] = (),
    log_level: str = "WARN",
) -> list[str]:
    """The command line that runs the class `main`; `jvm` are further options of the JVM."""
    # A JVM accepts only one archive option, so commands with further options use none.
    quick = archive.use(archive.archive(jars)) if profile == "test" and not jvm else []
    options = [*_JVM[profile], *quick, *jvm, *_logging(log_level)]
    return [program("java"), *options, "-cp", classpath(jars), main, *args]


def source_command(source: str, *args: str, jars: str) -> list[str]:
    """The command line that runs the main class of `<source>.java`, compiled if need be."""
    path = f"{compiled(source, jars)}{os.pathsep}{classpath(jars)}"
    return [program("java"), *_JVM["test"], *_logging("WARN"), "-cp", path, source, *args]


def run(source: str, *args: str, jars: str, stdin: str = "", timeout_s: float = 60) -> str:
    """The output of the main class of `<source>.java`; raises if it fails."""
    done = subprocess.run(
        source_command(source, *args, jars=jars),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode:
        raise PeerError(f"{source} ended with {done.returncode}\n{done.stderr}")
    return done.stdout


def compiled(source: str, jars: str) -> Path:
    """The folder with the classes of `<source>.java`; compiled if source or jars have changed."""
    file = SOURCES / f"{source}.java"
    key = hashlib.sha256(file.read_bytes() + (folder(jars) / "coordinates").read_bytes())
    into = cache() / "classes" / f"{source}-{jars}-{key.hexdigest()[:16]}"
    if into.is_dir():
        return into
    into.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent) as part:
        javac = [program("javac"), "-nowarn", "-d", part, "-cp", classpath(jars), str(file)]
        done = subprocess.run(javac, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PeerError(f"{file.name} does not compile against {jars}\n{done.stderr}")
        # Renamed into place: two test workers may compile the same source at once.
        whole = Path(part).with_suffix(".whole")
        shutil.copytree(part, whole)
        try:
            whole.rename(into)
        except OSError:
            shutil.rmtree(whole)
    return into


def java_process(source: str, *args: str, jars: str) -> LineProcess:
    """The main class of `<source>.java` as a process that answers line by line."""
    return LineProcess(source, source_command(source, *args, jars=jars))


def _logging(level: str) -> list[str]:
    # Each jar set brings one of three loggers, each of which reads only its own options.
    return [
        f"-Dpeers.log.level={level}",
        f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.properties'}",
        f"-Dlog4j.configuration=file:{SOURCES / 'log4j.properties'}",
        f"-Dorg.slf4j.simpleLogger.defaultLogLevel={level.lower()}",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
    ]
