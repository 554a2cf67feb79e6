"""Class-data archives: a JVM with an archive of loaded classes starts in half the time.

The JVM ignores an archive that is missing or was made from other jars, so every command may name
one.
"""

import hashlib
import shutil
from pathlib import Path

from peers.jars import cache, folder


def archive(jars: str) -> Path:
    """The path of a jar set's archive, whether or not it exists."""
    return made_of(folder(jars) / "coordinates", cache() / "archives" / jars)


def made_of(jars: Path, name: Path) -> Path:
    """The path of an archive; it changes with new jars or a new Java."""
    files = (jars, Path(shutil.which("java") or "/").resolve())
    key = hashlib.sha256("".join(f"{file} {file.stat().st_mtime_ns} " for file in files).encode())
    return name.with_name(f"{name.name}-{key.hexdigest()[:16]}.jsa")


def use(made: Path) -> list[str]:
    """JVM options to use an archive; the second silences a JVM that ignores the archive."""
    return [f"-XX:SharedArchiveFile={made}", "-Xlog:disable"]


def write(into: Path) -> list[str]:
    """JVM options that archive, at a regular exit, every class that the run has loaded."""
    return [f"-XX:ArchiveClassesAtExit={into}", "-Xlog:disable"]
