"""A metadata tree for each test."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from penstock.clock import SystemClock
from penstock.metadata.tree import Tree


@pytest.fixture
def tree() -> Iterator[Tree]:
    with closing(Tree.in_memory(SystemClock())) as tree:
        yield tree
