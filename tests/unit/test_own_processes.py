"""Processes that Penstock starts do not depend on the working directory."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_module_is_run_without_the_working_directory() -> None:
    """With `python -m` alone, a local queue.py would replace Python's own module."""
    found = 0
    for path in ROOT.glob("src/penstock/**/*.py"):
        for before in re.findall(r'(\S+)\s+"-m",', path.read_text(encoding="utf-8")):
            found += 1
            assert before == '"-P",', path
    assert found > 5
    assert " -P -m penstock.kafka_tools " in (ROOT / "bin/run-tool").read_text(encoding="utf-8")
