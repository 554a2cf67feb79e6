"""`penstock-spark-python`: the command for Spark's Python workers on this machine.

Spark puts an archive of itself, pyspark.zip, first on PYTHONPATH. Python compiles what it imports
from an archive in every process: 0.7 s of CPU instead of 0.25 s, and a first query starts half a
dozen processes. This command leaves the archive out if the same package is installed here.
"""

import os
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

NAME = "penstock-spark-python"
LIB = Path("pyspark", "python", "lib")
"""Where a Spark that pip installed has its archives."""


def worker_python() -> str:
    """The command of this module, or Python itself if Penstock runs without being installed."""
    command = Path(sysconfig.get_path("scripts")) / NAME
    return str(command) if os.access(command, os.X_OK) else sys.executable


def run() -> None:
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(without_archives(path, sys.path, os.path.exists))
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])  # noqa: S606 - arguments of Spark


def without_archives(
    python_path: list[str], folders: list[str], exists: Callable[[Path], bool]
) -> list[str]:
    """The path without Spark's archives whose package is also in one of the folders, as part of the
    same installation.
    """
    archives = {Path(folder) / LIB: Path(folder) for folder in folders if folder}

    def is_installed(entry: str) -> bool:
        archive = Path(entry)
        folder = archives.get(archive.parent)
        package = archive.stem.partition("-")[0]  # pyspark.zip, py4j-0.10.9.9-src.zip
        return folder is not None and exists(folder / package / "__init__.py")

    return [entry for entry in python_path if not is_installed(entry)]
