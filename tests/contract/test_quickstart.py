"""The first example of README, run as a reader would."""

import os
import signal
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart.py"


def test_the_first_example_reads_back_its_records(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, str(EXAMPLE)],
        cwd=tmp_path,
        env={**os.environ, "PORT": "0"},
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        reported = []
        for line in running.stdout:
            reported.append(line)
            if line.startswith("Serving"):
                break
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
    assert "read back 1000 records from topic 'quickstart'\n" in reported
    assert (tmp_path / "penstock-data").is_dir()
