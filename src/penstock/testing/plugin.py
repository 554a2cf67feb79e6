"""pytest fixtures, found by pytest itself once penstock is installed.

    def test_what_was_produced_is_counted(broker):
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        ...

`broker.create_topic("events", partitions=3)` makes a topic. `broker` is new for each test;
`shared_broker` is one for the whole session. Both take the settings of a fixture
`broker_settings`, if there is one of that name, such as
`{"auto.create.topics.enable": "false"}`; `group.initial.rebalance.delay.ms` is 0 unless set there.

`cluster` and `shared_cluster` are three brokers with ZooKeeper, or as many as a fixture
`cluster_size` says, with the settings of `broker_settings` too.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from penstock.testing.broker import Broker
    from penstock.testing.cluster import Cluster


QUICK = {"group.initial.rebalance.delay.ms": "0"}
"""In a test no further consumer is worth waiting for: the first one joins seconds earlier."""


@pytest.fixture(scope="session")
def broker_settings() -> Mapping[str, str]:
    """Override it to start brokers with other settings."""
    return {}


@pytest.fixture
def broker(broker_settings: Mapping[str, str]) -> "Iterator[Broker]":
    """A broker for this test alone; `broker.bootstrap` is its address."""
    yield from _started(broker_settings)


@pytest.fixture(scope="session")
def shared_broker(broker_settings: Mapping[str, str]) -> "Iterator[Broker]":
    """A broker for the whole session: topics are shared, so give each test its own."""
    yield from _started(broker_settings)


def _started(settings: Mapping[str, str]) -> "Iterator[Broker]":
    # Late: whoever runs pytest without a broker does not pay for it.
    from penstock.testing.broker import Broker

    with Broker(settings={**QUICK, **settings}) as broker:
        yield broker


@pytest.fixture(scope="session")
def cluster_size() -> int:
    """Override it to start clusters of another size."""
    return 3


@pytest.fixture
def cluster(cluster_size: int, broker_settings: Mapping[str, str]) -> "Iterator[Cluster]":
    """A cluster for this test alone, which may kill its brokers; `cluster.bootstrap`."""
    yield from _formed(cluster_size, broker_settings)


@pytest.fixture(scope="session")
def shared_cluster(cluster_size: int, broker_settings: Mapping[str, str]) -> "Iterator[Cluster]":
    """A cluster for the whole session: give each test topics of its own, and kill nobody."""
    yield from _formed(cluster_size, broker_settings)


def _formed(size: int, settings: Mapping[str, str]) -> "Iterator[Cluster]":
    from penstock.testing.cluster import Cluster

    with Cluster(size, settings={**QUICK, **settings}) as cluster:
        yield cluster
