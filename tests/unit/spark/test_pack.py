"""The content of an archive for executors, and the Spark settings that refer to it."""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from penstock.config.extra import install
from penstock.errors import ConfigError
from penstock.spark.pipeline.failure import first_lines
from penstock.spark.pipeline.pack import UNPACKED, archive_settings, closure, pack, packed
from penstock.spark.pipeline.settings import elsewhere_environment

INSTALLED: dict[str, list[str]] = {
    "penstock": [
        "crc32c>=2.7",
        'uvloop>=0.21; sys_platform != "win32"',
        'pyspark[pipelines]<4.4; extra == "spark"',
        'numpy>=2; extra == "spark"',
        'pandas<3; extra == "spark"',
        'pyarrow>=18; extra == "spark"',
        'psycopg[binary, pool]>=3; extra == "database"',
        'ruff; extra == "dev"',
    ],
    "crc32c": [],
    "pyspark": ["py4j"],
    "py4j": [],
    "numpy": [],
    "pandas": ["numpy", "Python_DateUtil>=2.8", 'pytest; extra == "test"'],
    "python-dateutil": ["pandas"],  # a cycle
    "pyarrow": [],
    "psycopg": ['psycopg-binary==3; python_version > "3" and extra == "binary"', 'x; extra == "c"'],
    "psycopg-binary": [],
    "x": [],
    "ruff": [],
    "pytest": [],
    "geo": ["numpy"],
}


def requirements(name: str) -> Iterable[str] | None:
    return INSTALLED.get(name)


def test_the_archive_has_dependencies_without_spark_and_tools() -> None:
    needed = ["crc32c", "numpy", "pandas", "psycopg", "psycopg-binary", "pyarrow"]
    assert packed([], requirements) == [*needed, "python-dateutil"]
    assert "geo" in packed(["Geo"], requirements)


def test_an_extra_applies_only_to_its_distribution() -> None:
    assert closure(["psycopg"], requirements) == {"psycopg"}
    assert closure(["psycopg", "psycopg[c]"], requirements) == {"psycopg", "x"}


def test_an_error_names_the_missing_distribution() -> None:
    with pytest.raises(ConfigError, match="--include nothing: no distribution of this name"):
        packed(["nothing"], requirements)
    without = {name: found for name, found in INSTALLED.items() if name != "pyarrow"}
    reported = f"pyarrow is not installed: {install('spark')}"
    with pytest.raises(ConfigError, match=re.escape(reported)):
        packed([], without.get)


def test_a_python_without_packages_imports_penstock_from_the_unpacked_archive(
    tmp_path: Path,
) -> None:
    archive = tmp_path / "environment.tar"
    assert "pyarrow" in pack(archive)
    assert [each.name for each in tmp_path.iterdir()] == [archive.name]
    (tmp_path / UNPACKED).mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", tmp_path / UNPACKED], check=True)
    script = (
        "import pyspark_penstock_files, penstock.spark.source.read as read\n"
        "import penstock.spark.sink.task as task, sqlalchemy\n"
        "print(*sorted({each.__file__ for each in (read, task, sqlalchemy)}), sep='\\n')\n"
        "print(read.NATIVE)"
    )
    path = [str(tmp_path / UNPACKED), *spark_itself()]
    ended = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {path}\n{script}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    *files, native = ended.stdout.splitlines()
    assert all(each.startswith(str(tmp_path)) for each in files)
    from penstock.spark.decode.decoder import NATIVE

    assert native == str(NATIVE)


def spark_itself() -> list[str]:
    """Find pyspark as executors do: in Spark's zip files."""
    import pyspark

    return [str(each) for each in (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip")]


def test_an_archive_name_that_spark_does_not_unpack_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"e\.zip: name it \.tar or \.tar\.gz or \.tgz"):
        pack(tmp_path / "e.zip")
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        pack(tmp_path / "nowhere" / "e.tar")


def test_the_archive_is_added_to_the_users_own(tmp_path: Path) -> None:
    archive = tmp_path / "my env.tar"
    with pytest.raises(ConfigError, match="no such file; `penstock pipeline pack"):
        archive_settings(archive)
    archive.touch()
    own = f"{tmp_path.as_uri()}/my%20env.tar#{UNPACKED}"
    assert archive_settings(archive) == {
        "spark.archives": own,
        "spark.executorEnv.PYTHONPATH": UNPACKED,
    }
    assert archive_settings(archive, "data.zip#data")["spark.archives"] == f"data.zip#data,{own}"


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        (
            "... ModuleNotFoundError: No module named 'penstock'\n",
            "executors cannot import penstock",
        ),
        (
            'java.io.IOException: Cannot run program "/v/bin/python": error=2',
            "have no /v/bin/python",
        ),
    ],
)
def test_an_error_about_missing_modules_names_the_archive(said: str, reported: str) -> None:
    text = first_lines(f"[X] Job aborted.\nTraceback:\n{said}\tat org.apache")
    assert reported in text
    assert "penstock pipeline pack" in text
    assert "Traceback" not in text


def test_other_failures_are_reported_unchanged() -> None:
    assert first_lines("No module named 'mine'\n\n\tat x") == "No module named 'mine'"


def test_one_command_starts_the_python_of_each_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin")
    made = elsewhere_environment()
    assert made["PYSPARK_PYTHON"] == f"python3.{sys.version_info.minor}"
    assert made["PATH"] == f"{Path(sys.executable).parent}:/usr/bin"
    assert "PYTHONPATH" not in made, "executors would look there first"
    assert made["PYSPARK_DRIVER_PYTHON"] == made["PYSPARK_PYTHON"], "sources are run by this one"
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    assert elsewhere_environment()["PYSPARK_PYTHON"] == "/opt/python"
