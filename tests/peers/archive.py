"""Class-data archives: a JVM that finds its classes ready-made starts in half the time.

The JVM ignores an archive that is absent, or that was made of other jars, so every command may
name one.
"""

import hashlib
import shutil
from pathlib import Path

from peers.jars import cache, folder


def archive(jars: str) -> Path:
    """Where the archive of a jar set lies, if one was made."""
    return made_of(folder(jars) / "coordinates", cache() / "archives" / jars)


def made_of(jars: Path, name: Path) -> Path:
    """The path of an archive: new jars or a new Java move it."""
    files = (jars, Path(shutil.which("java") or "/").resolve())
    key = hashlib.sha256("".join(f"{file} {file.stat().st_mtime_ns} " for file in files).encode())
    return name.with_name(f"{name.name}-{key.hexdigest()[:16]}.jsa")


def use(made: Path) -> list[str]:
    """JVM options; without the second, a JVM that ignores the archive says so on its output."""
    return [f"-XX:SharedArchiveFile={made}", "-Xlog:disable"]


def write(into: Path) -> list[str]:
    """JVM options that archive, at a regular exit, every class which the run has loaded."""
    return [f"-XX:ArchiveClassesAtExit={into}", "-Xlog:disable"]
