"""`pip install .` in an empty environment, with only the declared dependencies, can serve."""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip"]


def run(*words: str | Path, given: str = "", **more: str) -> str:
    without = {"PYTHONPATH", "PENSTOCK_BOOTSTRAP", "PENSTOCK_PURE"}
    environ = {name: value for name, value in os.environ.items() if name not in without} | more
    done = subprocess.run(
        words, env=environ, input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def needed(distributed: Distribution) -> Iterator[Distribution]:
    """The requirements of a distribution without extras, recursively."""
    for each in map(Requirement, distributed.requires or []):
        if each.marker is None or each.marker.evaluate({"extra": ""}):
            found = distribution(each.name)
            yield found
            yield from needed(found)


COMPILED = pytest.param("0", marks=[pytest.mark.soak, pytest.mark.timeout(900)])
"""The compiled form takes a minute to build. All other tests run it; only its installation is
tested here.
"""


@pytest.mark.parametrize("pure", ["1", COMPILED])
def test_the_core_installation_serves(tmp_path: Path, pure: str) -> None:
    source = tmp_path / "source"
    not_sources = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=not_sources)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    # No package index is used: the build tools and the requirements come from the test environment.
    offline = ["--quiet", "--no-index", "--no-deps"]
    build = [*PIP, "wheel", *offline, "--no-build-isolation"]
    run(*build, "-w", tmp_path, source, PENSTOCK_PURE=pure)
    (wheel,) = tmp_path.glob("penstock-*.whl")
    assert wheel.name.endswith("-py3-none-any.whl") == (pure == "1")
    empty = tmp_path / "venv"
    venv.create(empty, symlinks=True)
    run(*PIP, "--python", empty / "bin" / "python", "install", *offline, wheel)
    (site,) = empty.glob("lib/python*/site-packages")
    for each in needed(distribution("penstock")):
        for top in {file.parts[0] for file in each.files or [] if file.parts[0] != ".."}:
            if not (site / top).exists():
                (site / top).symlink_to(str(each.locate_file(top)))

    asks = "from penstock.compiled import is_compiled; print(is_compiled())"
    assert run(empty / "bin" / "python", "-c", asks).strip() == str(pure == "0")
    penstock = empty / "bin" / "penstock"
    served = tmp_path / "data"
    run(penstock, "serve", "--daemon", "--port", "0", "--dir", served)
    try:
        run(penstock, "topic", "create", "events", "--dir", served)
        run(penstock, "produce", "events", "--dir", served, given="hello\n")
        assert run(penstock, "consume", "events", "--dir", served) == "hello\n"
    finally:
        run(penstock, "stop", "--dir", served)
