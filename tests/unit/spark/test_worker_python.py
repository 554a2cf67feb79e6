"""Spark's Python workers import the installed pyspark, not the archive of it."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from penstock.spark.worker_python import NAME, without_archives, worker_python

SITE = "/venv/site-packages"
LIB = f"{SITE}/pyspark/python/lib"
ARCHIVES = [f"{LIB}/pyspark.zip", f"{LIB}/py4j-0.10.9.9-src.zip"]


def found(*packages: str) -> list[str]:
    installed = {Path(SITE, package, "__init__.py") for package in packages}
    return without_archives([*ARCHIVES, "/work"], ["/work", SITE], installed.__contains__)


def test_archives_of_the_installed_packages_are_left_out() -> None:
    assert found("pyspark", "py4j") == ["/work"]


def test_an_archive_stays_if_its_package_is_not_installed() -> None:
    assert found("pyspark") == [ARCHIVES[1], "/work"]


def test_archives_of_another_spark_stay() -> None:
    path = ["/opt/spark/python/lib/pyspark.zip", *ARCHIVES]
    assert without_archives(path, ["/work"], lambda _: True) == path


def test_a_worker_imports_the_installed_spark() -> None:
    command = worker_python()
    assert Path(command).name == NAME, "make setup installs the command"
    home = Path(pyspark.__file__).parent
    archive = home / "python" / "lib" / "pyspark.zip"
    code = "import sys; import pyspark; print(pyspark.__file__)"
    for python, expected in ((sys.executable, archive), (command, home)):
        done = subprocess.run(
            [python, "-c", code],
            env={**os.environ, "PYTHONPATH": str(archive)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert Path(done.stdout.strip()).is_relative_to(expected)
