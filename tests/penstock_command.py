"""`penstock` as users call it, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from peers.penstock import SOURCE
from peers.process import tied_to_us

PENSTOCK = [sys.executable, "-m", "penstock"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}
QUICK = [
    "--master=local[2]",
    "--conf=spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "--conf=spark.driver.memory=1g",
]
"""For a Spark that lives a minute or two."""


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
    """It goes on; what it prints is in `folder`/out and `folder`/err."""
    with (folder / "out").open("ab") as out, (folder / "err").open("ab") as err:
        return subprocess.Popen(
            [*tied_to_us(), *PENSTOCK, *words], env=ENVIRONMENT, stdout=out, stderr=err
        )
