"""The C extension is optional."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


WITHOUT_EXTENSION = """
import sys
sys.modules["penstock.record._walk"] = None
from penstock.record import walk
assert not walk.NATIVE and walk.walk is walk.walk_in_python
from penstock.record.validate import walk as used
assert used is walk.walk
print(walk.walk(bytes.fromhex("100000 00 026b 0276 00"), 1, True))
"""


def test_the_python_walk_runs_if_the_extension_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTENSION],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "(0, 0)\n"
