"""`scripts/run-tests` with a program in place of pytest."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "run-tests"
RUN = """
import json, pathlib, sys
calls, failures = pathlib.Path("calls"), json.loads(sys.argv[1])
nth = len(calls.read_text().splitlines()) if calls.exists() else 0
with calls.open("a") as file:
    print(*sys.argv[2:], file=file)
failed = pathlib.Path(".pytest_cache/v/cache/lastfailed")
failed.parent.mkdir(parents=True, exist_ok=True)
names = [f"tests/{each // 2}.py::test[{each}]" for each in range(failures[nth])]
failed.write_text(json.dumps(dict.fromkeys(names, True)))
sys.exit(bool(failures[nth]))
"""
TOGETHER = "-n 2 --cache-clear"
ALONE = "-n 0 --last-failed --last-failed-no-failures none"


def run(failures: str, folder: Path, environ: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    (folder / "run.py").write_text(RUN)
    return subprocess.run(
        [SCRIPT, "python3", "run.py", failures],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_failed_test_is_not_run_again(tmp_path: Path) -> None:
    environ = {name: text for name, text in os.environ.items() if name != "RETRY"}
    assert run("[1, 0]", tmp_path, environ).returncode == 1
    assert (tmp_path / "calls").read_text().splitlines() == [TOGETHER]


@pytest.mark.parametrize(
    ("failures", "code", "calls"),
    [
        ("[0]", 0, [TOGETHER]),
        ("[10, 0]", 0, [TOGETHER, ALONE]),
        ("[10, 1, 0]", 0, [TOGETHER, ALONE, ALONE]),
        ("[10, 1, 1]", 1, [TOGETHER, ALONE, ALONE]),
        ("[11]", 1, [TOGETHER]),
    ],
)
def test_on_request_failures_in_up_to_five_files_run_again_alone(
    failures: str, code: int, calls: list[str], tmp_path: Path
) -> None:
    done = run(failures, tmp_path, {**os.environ, "RETRY": "1"})
    assert (done.returncode, done.stderr) == (code, "")
    assert (tmp_path / "calls").read_text().splitlines() == calls
    named = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(named) == (10 if code == 0 and len(calls) > 1 else 0)
