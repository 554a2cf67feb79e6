"""Class-data archives: a JVM that finds its classes ready-made starts in half the time.

The JVM ignores an archive that is absent, or that was made of other jars, so every command may
name one.
"""

import hashlib
from pathlib import Path

from peers.jars import cache, folder, program


def archive(jars: str) -> Path:
    """Where the archive of a jar set lies, if one was made; new jars or a new Java move it."""
    made_of = (folder(jars) / "coordinates", Path(program("java")).resolve())
    key = hashlib.sha256("".join(f"{file} {file.stat().st_mtime_ns} " for file in made_of).encode())
    return cache() / "archives" / f"{jars}-{key.hexdigest()[:16]}.jsa"


def use(jars: str) -> list[str]:
    """JVM options; without the second, a JVM that ignores the archive says so on its output."""
    return [f"-XX:SharedArchiveFile={archive(jars)}", "-Xlog:disable"]


def write(into: Path) -> list[str]:
    """JVM options that archive, at a regular exit, every class which the run has loaded."""
    return [f"-XX:ArchiveClassesAtExit={into}", "-Xlog:disable"]
