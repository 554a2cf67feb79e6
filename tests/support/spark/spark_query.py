"""Runs `spark_job` with faults, restarts the broker when needed, and reads the result."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from peers.process import last_lines, tied_to_us, wait_until
from penstock.spark.worker_python import worker_python
from support.spark.spark_faults import Fault, Folder

ROOT = Path(__file__).parents[3]
PYTHON_PATH = f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}"
ENVIRONMENT = {
    "PYTHONPATH": PYTHON_PATH,
    "PYSPARK_PYTHON": worker_python(),
    "SPARK_LOCAL_IP": "127.0.0.1",
}
WAIT_S = 240
STARTS = 12


def write_input(folder: Path, epochs: int, rows: int, partitions: int) -> set[int]:
    """Writes one file per epoch, whose names and times give the order; returns all ids."""
    into = folder / "input"
    into.mkdir(parents=True)
    for epoch in range(epochs):
        ids = range(epoch * rows, (epoch + 1) * rows)
        lines = [json.dumps({"id": each, "part": each % partitions}) for each in ids]
        file = into / f"{epoch:05}.json"
        file.write_text("\n".join(lines))
        os.utime(file, (1_700_000_000 + epoch, 1_700_000_000 + epoch))
    return set(range(epochs * rows))


def run(
    master: str,
    bootstrap: str,
    folder: Path,
    faults: list[Fault],
    *options: str,
    restart_broker: Callable[[], None] | None = None,
    wait_s: float = WAIT_S,
) -> None:
    """Runs until the job says that it is done; a killed driver is restarted."""
    reported = Folder(folder / "faults")
    reported.write_plan(faults)
    deadline = time.monotonic() + wait_s
    asked = reported.path / "kill-broker"
    command = [
        sys.executable,
        "-m",
        "support.spark.spark_job",
        master,
        bootstrap,
        str(folder),
        *options,
    ]

    def ended(job: subprocess.Popen[bytes]) -> bool:
        if restart_broker is not None and asked.exists():
            restart_broker()
            asked.unlink()
        return job.poll() is not None

    for start in range(STARTS):
        output = folder / f"output-{start}"
        with output.open("wb") as out:
            job = subprocess.Popen(
                [*tied_to_us(), *command],
                stdout=out,
                stderr=out,
                env=os.environ | ENVIRONMENT,
                start_new_session=True,
            )
        try:
            wait_until(partial(ended, job), deadline - time.monotonic(), "the job to end")
        except TimeoutError as late:
            raise AssertionError(f"{late}\n{last_lines(output)}") from late
        finally:
            # The driver's JVM and its Python workers are in the session that this test started.
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        if job.returncode == 0:
            return
        if "jvm" not in {fault.action for fault in faults}:
            raise AssertionError(f"the job failed\n{last_lines(output)}")
    raise AssertionError("the driver was started too often")
