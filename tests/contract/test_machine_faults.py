"""Faults of a machine: the interposing tool works, and a cluster survives each kind of fault."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults import interposed, soak
from faults.catalog import Fault
from faults.interposed import MachineCluster
from faults.machine_catalog import MACHINES
from faults.scenario import survives
from faults.stage import Stage

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

QUICK = {"fsync fails", "no more files"}
PROBE = """
import os, time
with open("probe", "wb", buffering=0) as file:
    began = time.monotonic()
    assert file.write(b"xx") == 2
    print(round(time.monotonic() - began, 1), round(time.time() - os.stat("probe").st_mtime))
    os.fsync(file.fileno())
"""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    if (reason := interposed.unusable()) is not None:
        pytest.skip(reason)
    with soak.stage() as made:
        yield made


def test_an_interposed_machine_has_the_requested_faults(tmp_path: Path) -> None:
    if (reason := interposed.unusable()) is not None:
        pytest.skip(reason)
    machines = MachineCluster("127.0.0.1:1", folder=tmp_path)

    def probed() -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, **given}
        words = [sys.executable, "-c", PROBE]
        return subprocess.run(
            words, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )

    given = machines.environ(0)
    assert (probed().stdout.split(), probed().returncode) == (["0.0", "0"], 0)
    with machines.other_time(0, 3600):
        assert probed().stdout.split()[1] == "3600"
    with machines.slow_disk(0, 200_000):
        assert float(probed().stdout.split()[0]) >= 0.2
    with machines.full_disk(0):
        assert "AssertionError" in probed().stderr
        assert (tmp_path / "probe").stat().st_size == 1
    with machines.failing_sync(0):
        assert "Input/output error" in probed().stderr
    assert probed().returncode == 0


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=name, marks=[] if name in QUICK else [pytest.mark.soak])
        for name, fault in MACHINES.items()
    ],
)
def test_acknowledged_records_survive(stage: Stage, fault: Fault) -> None:
    survives(stage, fault)
