"""The brokers that the scenarios run against."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

BROKERS = ["kafka", "penstock", "penstock_workers"]
"""`kafka`, the real one, is the oracle; the others are ours, as one process and as two workers.
Each is a fixture of that name.
"""

GROUP_BROKERS = ["kafka", "penstock", "penstock_workers"]
"""Those that coordinate groups."""


class Target(Protocol):
    """A broker that is its own cluster."""

    @property
    def bootstrap(self) -> str: ...

    def data_dir(self, broker: int) -> Path: ...


def parameters(brokers: Sequence[str]) -> list[object]:
    """For a `target` that is each of these in turn.

    The oracle's answers change with Kafka's version only, so that `make test` need not ask it
    again: `make soak` does, and whoever sets PENSTOCK_ORACLE. Workers are in `make soak` too, or
    with PENSTOCK_WORKERS.
    """
    marks = {
        "kafka": [pytest.mark.peer, *rare_unless("PENSTOCK_ORACLE")],
        "penstock_workers": rare_unless("PENSTOCK_WORKERS"),
    }
    return [pytest.param(name, marks=marks.get(name, [])) for name in brokers]


def rare_unless(variable: str) -> list[pytest.MarkDecorator]:
    return [] if os.environ.get(variable) else [pytest.mark.soak]
