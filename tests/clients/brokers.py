"""The brokers that the scenarios run against."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

BROKERS = ["kafka", "penstock"]
"""`kafka`, the real one, is the oracle; `penstock` is ours. Each is a fixture of that name."""

GROUP_BROKERS = ["kafka", "penstock"]
"""Those that coordinate groups."""


class Target(Protocol):
    """A broker that is its own cluster."""

    @property
    def bootstrap(self) -> str: ...

    def data_dir(self, broker: int) -> Path: ...


def parameters(brokers: Sequence[str]) -> list[object]:
    """For a `target` that is each of these in turn.

    The oracle's answers change with Kafka's version only, so that `make test` need not ask it
    again: `make soak` does, and whoever sets PENSTOCK_ORACLE.
    """
    rare = [] if os.environ.get("PENSTOCK_ORACLE") else [pytest.mark.soak]
    oracle = [pytest.mark.peer, *rare]
    return [pytest.param(name, marks=oracle if name == "kafka" else []) for name in brokers]
