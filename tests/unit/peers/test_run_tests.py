"""`scripts/run-tests` with a program in place of pytest."""

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
def test_failures_in_up_to_five_files_run_again_alone(
    failures: str, code: int, calls: list[str], tmp_path: Path
) -> None:
    (tmp_path / "run.py").write_text(RUN)
    done = subprocess.run(
        [SCRIPT, "python3", "run.py", failures],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert (tmp_path / "calls").read_text().splitlines() == calls
    named = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(named) == (10 if code == 0 and len(calls) > 1 else 0)
