"""The hot modules run compiled from the sources beside them, or not at all."""

import ast
import os
import shutil
import subprocess
import sys
import time
import tomllib
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import pytest

import penstock.record.batch as hot
from penstock.compiled import SUMS, edited, is_compiled
from penstock.errors import ErrorCode, KafkaError

ROOT = Path(__file__).parents[2]
COMPILED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["penstock"]["compiled"]


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(os.environ.get("PENSTOCK_PURE") == "1", reason="asked to run the sources")
@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_the_installed_build_is_compiled() -> None:
    assert is_compiled()
    assert hot.__file__.endswith(".so")


def test_the_sources_run_on_request() -> None:
    script = "import penstock.record.batch as hot, penstock.record.walk as walk"
    done = run(f"{script}; print(hot.__file__, walk.NATIVE)", PENSTOCK_PURE="1")
    assert done.stdout == f"{ROOT / 'src/penstock/record/batch.py'} False\n", done.stderr


def compiled_from(folder: Path, source: str, read_ns: int) -> None:
    (folder / "hot.py").write_text("now = 1")
    sums = folder / SUMS
    sums.write_text(f"{sha256(source.encode()).hexdigest()} hot.py\n")
    os.utime(sums, ns=(read_ns, read_ns))


def test_a_source_that_changed_since_it_was_compiled_is_noticed(tmp_path: Path) -> None:
    compiled_from(tmp_path, "before = 1", read_ns=time.time_ns() - 10**9)
    assert edited(tmp_path) == ["hot.py"]
    (tmp_path / "hot.py").unlink()
    assert edited(tmp_path) == ["hot.py"]


def test_a_rewritten_but_unchanged_source_counts_as_compiled(tmp_path: Path) -> None:
    compiled_from(tmp_path, "now = 1", read_ns=0)
    assert edited(tmp_path) == []


def test_an_installation_that_was_not_built_in_place_is_not_checked(tmp_path: Path) -> None:
    assert edited(tmp_path) == []


def test_stale_code_is_refused_in_one_sentence(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "src/penstock", tmp_path / "penstock", ignore=lambda *_: {"wire", "spark"}
    )
    source = tmp_path / "penstock/clock.py"
    compiled_from(tmp_path / "penstock", "before = 1", read_ns=0)
    source.write_text(source.read_text() + "\n")
    refused = run("import penstock", PYTHONPATH=str(tmp_path), PENSTOCK_PURE="")
    assert refused.stderr.endswith(
        "ImportError: penstock was compiled before hot.py changed: "
        "run `make setup`, or set PENSTOCK_PURE=1 to run the sources\n"
    )
    asked_for = run("import penstock.clock", PYTHONPATH=str(tmp_path), PENSTOCK_PURE="1")
    assert asked_for.returncode == 0, asked_for.stderr


@pytest.mark.parametrize("module", COMPILED)
def test_a_compiled_struct_has_no_options(module: str) -> None:
    """mypyc drops the keywords of a class: a Struct would be neither frozen nor keyword-only."""
    tree = ast.parse((ROOT / "src/penstock" / module).read_text())
    classes = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)]
    assert [each.name for each in classes if each.keywords] == []
    for each in classes:
        for decorator in each.decorator_list:
            assert "slots" not in ast.unparse(decorator), f"{each.name}: mypyc makes its own"


@pytest.mark.parametrize("module", COMPILED)
def test_a_compiled_error_has_the_code_of_its_own_class(module: str) -> None:
    """mypyc keeps the code of the base class unless both are declared as class variables."""
    tree = ast.parse((ROOT / "src/penstock" / module).read_text())
    imported = import_module(f"penstock.{module.removesuffix('.py').replace('/', '.')}")
    for each in tree.body:
        if isinstance(each, ast.ClassDef) and issubclass(getattr(imported, each.name), KafkaError):
            for line in map(ast.unparse, each.body):
                if line.startswith("code = ErrorCode."):
                    declared = ErrorCode[line.removeprefix("code = ErrorCode.")]
                    assert getattr(imported, each.name).code is declared
