"""Run Java against a named jar set: single source files of `tests/peers/java`, or main classes."""

import hashlib
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from peers import archive
from peers.jars import cache, classpath, folder, program
from peers.process import PeerError, last_lines

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
    # A JVM takes one archive option only, so further options are tried without one.
    quick = archive.use(jars) if profile == "test" and not jvm else []
    options = [*_JVM[profile], *quick, *jvm, *_logging(log_level)]
    return [program("java"), *options, "-cp", classpath(jars), main, *args]


def source_command(source: str, *args: str, jars: str) -> list[str]:
    """The command line that runs the main class of `<source>.java`, compiled if need be."""
    path = f"{compiled(source, jars)}{os.pathsep}{classpath(jars)}"
    return [program("java"), *_JVM["test"], *_logging("WARN"), "-cp", path, source, *args]


def run(source: str, *args: str, jars: str, stdin: str = "", timeout_s: float = 60) -> str:
    """What the main class of `<source>.java` prints; its failure is ours."""
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
    """The folder with the classes of `<source>.java`; compiled when source or jars are new."""
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
        # A copy that appears whole: two test workers may compile the same source at once.
        whole = Path(part).with_suffix(".whole")
        shutil.copytree(part, whole)
        try:
            whole.rename(into)
        except OSError:
            shutil.rmtree(whole)
    return into


class JavaProcess:
    """A long-lived main class that answers each line with one line, until its input ends."""

    def __init__(self, source: str, *args: str, jars: str) -> None:
        self._source = source
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-java-")
        self._stderr = Path(self._folder.name, "stderr")
        self._unread = bytearray()
        with self._stderr.open("wb") as stderr:
            self._popen = subprocess.Popen(
                source_command(source, *args, jars=jars),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def ask(self, line: str, timeout_s: float = 30) -> str:
        """Send a line and wait for the line that answers it."""
        assert "\n" not in line, "one question is one line"
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(line.encode() + b"\n")
            self._popen.stdin.flush()
        except BrokenPipeError as broken:
            raise self._failed("ended early") from broken
        return self._read_line(timeout_s)

    def _read_line(self, timeout_s: float) -> str:
        assert self._popen.stdout is not None
        fd, searched = self._popen.stdout.fileno(), 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            if not select.select([fd], [], [], timeout_s)[0]:
                raise self._failed(f"gave no answer in {timeout_s:g} s")
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                raise self._failed("ended early")
            self._unread += chunk
        line = self._unread[:end].decode()
        del self._unread[: end + 1]
        return line

    def _failed(self, how: str) -> PeerError:
        return PeerError(f"{self._source} {how}\n{last_lines(self._stderr)}")

    def close(self) -> None:
        for pipe in (self._popen.stdin, self._popen.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._popen.wait(5)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _logging(level: str) -> list[str]:
    # Each jar set brings its own of three loggers, and each reads only what is meant for it.
    return [
        f"-Dpeers.log.level={level}",
        f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.properties'}",
        f"-Dlog4j.configuration=file:{SOURCES / 'log4j.properties'}",
        f"-Dorg.slf4j.simpleLogger.defaultLogLevel={level.lower()}",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
    ]
