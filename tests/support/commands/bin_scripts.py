"""The scripts of `bin/`, called by a shell as documents show them."""

import os
import signal
import subprocess
from pathlib import Path

from peers.process import tied_to_us

ROOT = Path(__file__).parents[3]


class Shell:
    """Runs command lines in a folder, where its servers also register."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = f"{ROOT / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self._environment = {
            **os.environ,
            "PATH": path,
            "PENSTOCK_RUN_DIR": str(folder / "run"),
            "TMPDIR": str(folder),
        }

    def run(self, line: str, *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=cwd or self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def output(self, line: str, *, cwd: Path | None = None) -> str:
        """The output of a line, which must succeed."""
        done = self.run(line, cwd=cwd)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def lines_of(self, line: str, count: int) -> list[str]:
        """The first lines of a command that runs until Ctrl-C, which is then sent."""
        with subprocess.Popen(
            [*tied_to_us(), "bash", "-c", f"exec {line}"],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            assert running.stdout is not None
            found = [running.stdout.readline() for _ in range(count)]
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=30)
        assert running.returncode == 130, err
        return found
