"""The metadata store's contract on a real ZooKeeper, with one server and with three."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count

import pytest

from peers.zookeeper import ZooKeeper
from peers.zookeeper_session import end_session
from penstock.config.zookeeper import ZookeeperConfig
from penstock.metadata.store import MetadataStore
from penstock.metadata.zookeeper.opening import open_store
from penstock.metadata.zookeeper.store import ZooKeeperStore
from penstock.testing.metadata_store import check_metadata_store
from penstock.testing.store_ensemble import Ensemble

pytestmark = pytest.mark.peer

QUICK = {"tickTime": 200}
"""A session lasts at least two ticks."""


class RealEnsemble:
    """Opens sessions under a chroot of their own."""

    def __init__(self, zookeeper: ZooKeeper, chroot: str) -> None:
        self._port = zookeeper.port(0)
        self._config = ZookeeperConfig(
            zookeeper_connect=f"{zookeeper.connect}{chroot}", zookeeper_session_timeout_ms=4000
        )
        self.opened: list[ZooKeeperStore] = []

    async def connect(self) -> ZooKeeperStore:
        self.opened.append(await open_store(self._config))
        return self.opened[-1]

    async def expire(self, store: MetadataStore) -> None:
        assert isinstance(store, ZooKeeperStore)
        await asyncio.to_thread(end_session, self._port, *store._session.client_id)


@pytest.fixture(scope="module", params=[1, 3], ids=["one server", "three servers"])
def zookeeper(request: pytest.FixtureRequest) -> Iterator[ZooKeeper]:
    with ZooKeeper(request.param, settings=QUICK) as zookeeper:
        yield zookeeper


def test_zookeeper_keeps_the_contract(zookeeper: ZooKeeper) -> None:
    numbers = count()

    @asynccontextmanager
    async def make() -> AsyncIterator[Ensemble]:
        ensemble = RealEnsemble(zookeeper, f"/check/{next(numbers)}")
        try:
            yield ensemble
        finally:
            for store in ensemble.opened:
                await store.close()

    check_metadata_store(make)
