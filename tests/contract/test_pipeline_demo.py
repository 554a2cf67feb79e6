"""`make run` without a terminal: it runs and ends by itself."""

import os
import re
import subprocess
from pathlib import Path

import pytest

# A test in tests/unit checks the order of the minutes.
pytestmark = [pytest.mark.peer, pytest.mark.timeout(330)]

ROOT = Path(__file__).parents[2]


def test_the_main_job_analyses_minutes_in_order_and_ends() -> None:
    done = subprocess.run(
        ["make", "--old-file", ".venv/installed", "run"],  # keeps the environment
        cwd=ROOT,
        env=os.environ | {"PORT": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    minutes = re.findall(r"(?m)^2026-01-01 00:(\d\d)  ", done.stdout)
    assert minutes == [f"{number:02}" for number in range(len(minutes))]
    assert len(minutes) >= 5
    assert "the broker runs: True" in done.stdout
