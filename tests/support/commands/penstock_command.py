"""`penstock` as users call it, in a separate process."""

import os
import subprocess
import sys
from pathlib import Path

from peers.penstock import SOURCE
from peers.process import tied_to_us
from peers.spark import SHORT_LIVED

PENSTOCK = [sys.executable, "-m", "penstock"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}
QUICK = [
    "--master=local[2]",
    f"--conf=spark.driver.extraJavaOptions={SHORT_LIVED}",
    "--conf=spark.driver.memory=1g",
]
"""Options for a Spark that lives a minute or two."""

_OF_A_RUN = ("created ", "Spark ", "Flow ", "Run ", "stopped")


def foreign_lines(err: Path) -> list[str]:
    """Unexpected lines on the standard error of a pipeline's run. A JVM that ended used to print
    BrokenPipe, CANNOT_OPEN_SOCKET and Derby's banner there.
    """
    return [each for each in err.read_text().splitlines() if not each.startswith(_OF_A_RUN)]


def penstock(*words: str, timeout_s: float = 200) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PENSTOCK, *words],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """Starts a command that keeps running; its output is in `folder`/out and `folder`/err."""
    with (folder / "out").open("ab") as out, (folder / "err").open("ab") as err:
        return subprocess.Popen(
            [*tied_to_us(), *PENSTOCK, *words], env=ENVIRONMENT, stdout=out, stderr=err
        )
