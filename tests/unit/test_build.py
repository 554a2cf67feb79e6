"""What setup.py does if the C compiler is missing, or the sources cannot be compiled.

A copy with one small module in place of all that are compiled.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = """
[tool.penstock]
compiled = ["hot.py"]
"""
HOT = "def twice(number: int) -> int:\n    return number * 2\n"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "setup.py", tmp_path)
    for each in [*(ROOT / "src").rglob("_*.c"), *(ROOT / "src").rglob("_*.h")]:
        target = tmp_path / each.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(each, target)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "src" / "penstock" / "__init__.py").touch()
    (tmp_path / "src" / "penstock" / "hot.py").write_text(HOT)
    return tmp_path


def built(folder: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", "lib"],
        cwd=folder,
        env={**os.environ, "PENSTOCK_PURE": "", "MYPYPATH": "src", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_extensions_and_modules_are_compiled(copy: Path) -> None:
    done = built(copy)
    assert done.returncode == 0, done.stderr
    names = {each.name.partition(".")[0] for each in (copy / "lib").rglob("*.so")}
    assert names >= {"_walk", "_encode", "_fill", "hot", "penstock__mypyc"}


def test_installation_succeeds_without_a_compiler(copy: Path) -> None:
    done = built(copy, PATH="", CC="no-such-compiler")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("records will be handled in Python") == 1
    assert not list(copy.rglob("*.so"))


def test_sources_that_cannot_be_compiled_end_the_installation(copy: Path) -> None:
    hot = copy / "src" / "penstock" / "hot.py"
    hot.write_text(HOT.replace("number * 2", "str(number)"))
    done = built(copy)
    assert done.returncode != 0
    assert "hot.py:2: error: Incompatible return value type" in done.stdout + done.stderr
    assert done.stderr.splitlines()[-1].startswith("penstock: mypyc cannot compile the sources")
    assert built(copy, PENSTOCK_PURE="1").returncode == 0
