"""What every test may ask for: real peers, and how hard Hypothesis tries."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from peers.oracle import Oracle

settings.register_profile("ci", max_examples=25, deadline=None, print_blob=True)
settings.register_profile("soak", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile("soak" if os.environ.get("PENSTOCK_SOAK") else "ci")


@pytest.fixture(scope="session")
def java_oracle() -> Iterator[Oracle]:
    """Kafka 4.4's message classes; a test that asks for it is marked `peer`."""
    with Oracle() as oracle:
        yield oracle
