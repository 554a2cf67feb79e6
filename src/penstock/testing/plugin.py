"""pytest fixtures, which pytest finds once penstock is installed.

    def test_what_was_produced_is_counted(broker):
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        ...

`broker.create_topic("events", partitions=3)` creates a topic. `broker` is new for each test;
`shared_broker` serves the whole session. Override the fixture `broker_settings` to give both other
settings, such as `{"auto.create.topics.enable": "false"}`; `group.initial.rebalance.delay.ms` is 0
unless set there.

`registry` is a schema registry at `registry.url`, for the test's `broker`.

`cluster` and `shared_cluster` have three brokers with ZooKeeper, or as many as the fixture
`cluster_size` returns, also with the settings of `broker_settings`.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from penstock.testing.broker import EmbeddedBroker
    from penstock.testing.cluster import TemporaryCluster
    from penstock.testing.registry import EmbeddedRegistry


QUICK = {"group.initial.rebalance.delay.ms": "0"}
"""Without the delay, the first consumer of a group joins seconds earlier."""


@pytest.fixture(scope="session")
def broker_settings() -> Mapping[str, str]:
    """Broker settings by name for all Penstock fixtures; override it to change them."""
    return {}


@pytest.fixture
def broker(broker_settings: Mapping[str, str]) -> "Iterator[EmbeddedBroker]":
    """A new Penstock broker for this test; `broker.bootstrap` is its address."""
    yield from _started(broker_settings)


@pytest.fixture(scope="session")
def shared_broker(broker_settings: Mapping[str, str]) -> "Iterator[EmbeddedBroker]":
    """A Penstock broker for the whole session. Tests share its topics, so use a separate
    topic per test.
    """
    yield from _started(broker_settings)


def _started(settings: Mapping[str, str]) -> "Iterator[EmbeddedBroker]":
    # Imported late, so that test runs without a broker do not load it.
    from penstock.testing.broker import EmbeddedBroker

    with EmbeddedBroker(settings={**QUICK, **settings}) as broker:
        yield broker


@pytest.fixture
def registry(broker: "EmbeddedBroker") -> "Iterator[EmbeddedRegistry]":
    """A schema registry for the test's broker; `registry.url` is its address."""
    from penstock.testing.registry import EmbeddedRegistry

    with EmbeddedRegistry(broker.bootstrap) as registry:
        yield registry


@pytest.fixture(scope="session")
def cluster_size() -> int:
    """The number of brokers of `cluster` and `shared_cluster`; override it to change it."""
    return 3


@pytest.fixture
def cluster(cluster_size: int, broker_settings: Mapping[str, str]) -> "Iterator[TemporaryCluster]":
    """A new Penstock cluster with ZooKeeper for this test, which may kill its brokers;
    `cluster.bootstrap` has the addresses.
    """
    yield from _formed(cluster_size, broker_settings)


@pytest.fixture(scope="session")
def shared_cluster(
    cluster_size: int, broker_settings: Mapping[str, str]
) -> "Iterator[TemporaryCluster]":
    """A Penstock cluster with ZooKeeper for the whole session. Use a separate topic per test, and
    do not kill brokers.
    """
    yield from _formed(cluster_size, broker_settings)


def _formed(size: int, settings: Mapping[str, str]) -> "Iterator[TemporaryCluster]":
    from penstock.testing.cluster import TemporaryCluster

    with TemporaryCluster(size, settings={**QUICK, **settings}) as cluster:
        yield cluster
