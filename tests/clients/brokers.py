"""The brokers that the scenarios run against."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

BROKERS = ["kafka", "penstock", "penstock_workers"]
"""`kafka`, the real one, is the oracle; the others are ours, as one process and as two workers.
Each has a fixture of that name.
"""

GROUP_BROKERS = ["kafka", "penstock", "penstock_workers"]
"""The brokers that coordinate groups."""


class Target(Protocol):
    """A broker that is a cluster by itself."""

    @property
    def bootstrap(self) -> str: ...

    def data_dir(self, broker: int) -> Path: ...


def parameters(brokers: Sequence[str]) -> list[object]:
    """Parameters for a `target` that is each of these in turn.

    The oracle's answers change only with Kafka's version, so `make test` does not run it; `make
    soak` and PENSTOCK_ORACLE do. Workers also run in `make soak`, or with PENSTOCK_WORKERS.
    """
    marks = {
        "kafka": [pytest.mark.peer, *rare_unless("PENSTOCK_ORACLE")],
        "penstock_workers": rare_unless("PENSTOCK_WORKERS"),
    }
    return [pytest.param(name, marks=marks.get(name, [])) for name in brokers]


def rare_unless(variable: str) -> list[pytest.MarkDecorator]:
    return [] if os.environ.get(variable) else [pytest.mark.soak]
