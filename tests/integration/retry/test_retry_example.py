"""The retry queue example, run as a reader would."""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.testing.broker import EmbeddedBroker

EXAMPLE = Path(__file__).parents[3] / "examples" / "retry_orders.py"


@pytest.mark.row("A120", "A121", "A123")
def test_orders_are_retried_and_end_as_dead_letters(broker: EmbeddedBroker) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), broker.bootstrap],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert {each for each in lines if "failed" not in each} == {
        "apples: sold at attempt 1",
        "pears: sold at attempt 3",
        "plums: dead letter, gave up after 3 attempts: no plums in stock",
    }
    failed = [each.partition(",")[0] for each in lines if "failed" in each]
    assert sorted(failed) == [
        "apples: attempt 0 failed",
        *(f"pears: attempt {n} failed" for n in range(3)),
        *(f"plums: attempt {n} failed" for n in range(4)),
    ]
