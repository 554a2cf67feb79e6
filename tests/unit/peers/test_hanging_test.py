"""A test that hangs where no signal reaches it does not hang the whole run."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]
HANGS = """
import ctypes
import pytest

@pytest.mark.timeout(1)
def test_hangs():
    mutex = ctypes.create_string_buffer(64)
    for _ in range(2):  # a deadlock, which no signal ends
        ctypes.CDLL(None).pthread_mutex_lock(mutex)

def test_passes():
    pass
"""


def test_a_hanging_test_fails_and_the_others_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(HANGS)
    path = os.pathsep.join(map(str, (TESTS, TESTS.parent / "src")))
    command = f"{sys.executable} -m pytest -n 1 -p no:randomly -p no:cacheprovider -o timeout=30"
    done = subprocess.run(
        [*command.split(), "--rootdir", str(tmp_path), str(tmp_path)],
        env={"PATH": os.environ["PATH"], "PENSTOCK_TEST_GRACE_S": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "crashed while running" in done.stdout
