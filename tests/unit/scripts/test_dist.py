"""`make dist` says which Pythons it cannot build for."""

import sys
from pathlib import Path

import pytest
from scripts.dist import MINORS, fitting, missing, pythons


def test_versions_without_an_interpreter_are_named() -> None:
    assert missing(MINORS) == ""
    assert "no compiled wheel for Python 3.12, 3.14:" in missing([11, 13])


def test_a_program_that_is_no_python_does_not_fit(tmp_path: Path) -> None:
    assert fitting(str(tmp_path / "python3.12")) is None
    assert fitting("/bin/true") is None


def test_a_python_without_headers_does_not_fit(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c "
        '"import ensurepip, sysconfig, venv;'
        f"sysconfig.get_paths = lambda: {{'include': '{tmp_path}'}}; $2\"\n"
    )
    python.chmod(0o755)
    assert fitting(str(python)) is None
    (tmp_path / "Python.h").touch()
    assert fitting(str(python)) == (sys.version_info[1], Path(sys.executable))


def test_a_chosen_python_that_does_not_fit_is_refused() -> None:
    with pytest.raises(SystemExit, match="cannot build a release"):
        pythons(["/bin/true"])
