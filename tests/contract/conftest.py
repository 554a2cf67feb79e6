"""The broker under test, and the clients that run against it."""

import os
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from clients.brokers import BROKERS, Target, parameters
from clients.catalog import START, Name
from clients.protocol import CODECS, Client, Codec
from clients.referee import Referee
from peers.penstock import PenstockBroker
from peers.spark_session import only_here
from peers.workers import PenstockWorkers

only_here()


NEVER = (
    *("--set", "log.initial.task.delay.ms=86400000"),
    *("--set", "log.retention.check.interval.ms=86400000"),
)


@pytest.fixture(scope="session")
def penstock() -> Iterator[PenstockBroker]:
    # Retention first runs half a minute after the start, and then again during the tests. It would
    # delete the records whose timestamps are years old.
    with PenstockBroker(*NEVER) as broker:
        yield broker


@pytest.fixture(scope="session")
def penstock_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    with PenstockWorkers(2, *NEVER, folder=tmp_path_factory.mktemp("workers")) as broker:
        yield broker


@pytest.fixture(scope="session", params=parameters(BROKERS))
def target(request: pytest.FixtureRequest) -> Target:
    broker: Target = request.getfixturevalue(request.param)
    return broker


@pytest.fixture(scope="session")
def client_of(target: Target) -> Iterator[Callable[[Name], Client]]:
    """Clients by name; each is started once and serves all scenarios."""
    started: dict[Name, Client] = {}

    def named(name: Name) -> Client:
        if name not in started:
            started[name] = START[name](target.bootstrap)
        return started[name]

    yield named
    for client in started.values():
        client.close()


@pytest.fixture
def client(request: pytest.FixtureRequest, client_of: Callable[[Name], Client]) -> Client:
    return client_of(request.param)


@pytest.fixture(scope="session")
def referee(target: Target) -> Iterator[Referee]:
    """Prepares each scenario and checks its outcome, whichever client the scenario tests."""
    client = Referee(target.bootstrap)
    yield client
    client.close()


_numbers = count()


@pytest.fixture
def topic() -> str:
    """A unique topic name."""
    return f"contract-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def codec_on_disk(target: Target) -> Callable[[str], Codec]:
    """Reads the codec of the first batch of a topic's partition 0 from the broker's log."""

    def codec(topic: str) -> Codec:
        (log,) = target.data_dir(0).glob(f"**/{topic}-0/{0:020d}.log")
        attributes = int.from_bytes(log.read_bytes()[21:23])
        return CODECS[attributes & 7]

    return codec
