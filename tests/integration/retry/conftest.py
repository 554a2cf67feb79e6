"""A broker for the tests of this folder, and a unique name for each test."""

from collections.abc import Iterator
from itertools import count

import pytest

from penstock.testing.broker import EmbeddedBroker

_numbers = count()


@pytest.fixture(scope="package")
def bootstrap() -> Iterator[str]:
    with EmbeddedBroker(settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker.bootstrap


@pytest.fixture
def name() -> str:
    return f"t{next(_numbers)}"
