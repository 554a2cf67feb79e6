"""The nodes that a broker writes when it joins, compared one by one with those of Kafka 3.9."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from peers.kafka import KafkaCluster
from peers.probe import live_brokers
from peers.process import wait_until
from peers.zookeeper import ZooKeeper
from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.config.zookeeper import ZookeeperConfig
from penstock.controller.broker_registration import (
    BrokerIdInUse,
    InconsistentClusterId,
    cluster_id,
    prepare_tree,
    register,
)
from penstock.controller.epoch import ControllerEpoch
from penstock.metadata import paths
from penstock.metadata.reader import read_brokers, read_image
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import MetadataStore, Node
from penstock.metadata.zookeeper.opening import open_store
from penstock.metadata.zookeeper.store import ZooKeeperStore
from penstock.types import BrokerId, Uuid

pytestmark = pytest.mark.peer

KAFKA_ONLY = {"/feature"}
"""Written by a controller once it is elected, not by a broker that joins."""

MASKS = (
    (rb'"timestamp":"[0-9]{13}"', b'"timestamp":"now"'),
    (rb'"id":"[A-Za-z0-9_-]{22}"', b'"id":"random"'),
)


class Written(NamedTuple):
    """A node without the parts that differ from run to run."""

    data: bytes | None
    version: int
    ephemeral: bool


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper(settings={"tickTime": 500}) as zookeeper:
        yield zookeeper


@asynccontextmanager
async def opened(connect: str) -> AsyncIterator[ZooKeeperStore]:
    store = await open_store(ZookeeperConfig(zookeeper_connect=connect))
    try:
        yield store
    finally:
        await store.close()


async def tree(store: MetadataStore) -> dict[str, Node]:
    """Every node except the root, in the order of creation."""
    found: dict[str, Node] = {}
    level = ["/"]
    while level:
        names = await store.children_many(level)
        level = [f"{'' if at == '/' else at}/{name}" for at in names for name in names[at]]
        level = [path for path in level if path not in {"/zookeeper", "/penstock"}]
        found |= await store.get_many(level)
    return dict(sorted(found.items(), key=lambda each: each[1].created_zxid))


def written(node: Node) -> Written:
    data = node.data
    for random, masked in MASKS:
        data = None if data is None else re.sub(random, masked, data)
    return Written(data, node.version, bool(node.ephemeral_owner))


async def join(
    store: MetadataStore, broker: int, port: int, rack: str | None, cluster: Uuid
) -> int:
    """The steps of a broker before it runs for controller."""
    await prepare_tree(store)
    await cluster_id(store, None, cluster)
    address = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", port)
    registration = BrokerRegistration.of([address], 1794716063645, rack)
    return await register(store, BrokerId(broker), registration)


@pytest.mark.row("A085", "A086", "A143")
def test_a_broker_writes_what_kafka_writes(zookeeper: ZooKeeper) -> None:
    async def scenario(port: int) -> None:
        async with (
            opened(zookeeper.connect) as theirs,
            opened(f"{zookeeper.connect}/penstock/beside") as ours,
        ):
            expected = {
                path: node for path, node in (await tree(theirs)).items() if path not in KAFKA_ONLY
            }
            epoch = await join(ours, 0, port, "r1", Uuid(b"0123456789abcdef"))
            controller_epoch = await ControllerEpoch.win(ours, BrokerId(0), 1794716063869)
            made = await tree(ours)
            assert list(made) == list(expected)
            assert {path: written(node) for path, node in made.items()} == {
                path: written(node) for path, node in expected.items()
            }
            assert epoch == made["/brokers/ids/0"].created_zxid
            assert b'"rack":"r1","jmx_port"' in (made["/brokers/ids/0"].data or b"")
            assert controller_epoch.number == 1
            # We can also read what Kafka has written.
            kafka = (await read_image(theirs)).brokers[BrokerId(0)]
            assert kafka.epoch == expected["/brokers/ids/0"].created_zxid
            assert (kafka.rack, kafka.endpoints[0].port) == ("r1", port)

    with KafkaCluster(zookeeper=zookeeper.connect, settings={"broker.rack": "r1"}) as kafka:
        asyncio.run(scenario(kafka.port(0)))


def test_kafka_joins_the_tree_that_we_created(zookeeper: ZooKeeper) -> None:
    connect = f"{zookeeper.connect}/penstock/joined"

    async def scenario() -> None:
        async with opened(connect) as store:
            await join(store, 7, 9, "r1", Uuid(b"0123456789abcdef"))
            with KafkaCluster(zookeeper=connect) as kafka:
                wait_until(
                    lambda: live_brokers(kafka.port(0)) == {0, 7}, 30, "Kafka to know broker 7"
                )
                assert set(await read_brokers(store)) == {0, 7}
                stated = (kafka.data_dir(0) / "meta.properties").read_text()
                assert "cluster.id=MDEyMzQ1Njc4OWFiY2RlZg" in stated

    asyncio.run(scenario())


def test_concurrent_brokers_agree_on_one_cluster_id_and_one_registers(zookeeper: ZooKeeper) -> None:
    connect = f"{zookeeper.connect}/penstock/racing"

    async def scenario() -> None:
        agreed: list[str] = []
        refused: list[BrokerIdInUse] = []
        stores = [await open_store(ZookeeperConfig(zookeeper_connect=connect)) for _ in range(4)]

        async def run(number: int, store: ZooKeeperStore) -> None:
            await prepare_tree(store)
            agreed.append(await cluster_id(store, None, Uuid(bytes([number]) * 16)))
            try:
                await register(store, BrokerId(1), BrokerRegistration())
            except BrokerIdInUse as error:
                refused.append(error)

        async with asyncio.TaskGroup() as tasks:
            for number, store in enumerate(stores):
                tasks.create_task(run(number, store))
        assert len(agreed) == 4
        assert len(set(agreed)) == 1
        assert len(refused) == 3
        assert "broker 1 is registered already" in str(refused[0])
        assert await stores[0].children(paths.BROKER_IDS) == ["1"]
        other = "b" * 22
        assert agreed[0] != other
        with pytest.raises(InconsistentClusterId, match=f"{other}.*{agreed[0]}"):
            await cluster_id(stores[1], other, Uuid(bytes(16)))
        for store in stores:
            await store.close()

    asyncio.run(scenario())


def test_a_restart_without_the_session_key_waits_for_the_killed_brokers_session(
    zookeeper: ZooKeeper,
) -> None:
    """There is no key to end the old session with: the data directory was lost, or an older
    Penstock wrote it.
    """
    connect = f"{zookeeper.connect}/penstock/killed"

    async def scenario() -> None:
        former = await open_store(
            ZookeeperConfig(zookeeper_connect=connect, zookeeper_session_timeout_ms=1000)
        )
        before = await join(former, 1, 9, None, Uuid(b"0123456789abcdef"))
        async with opened(connect) as store:
            with pytest.raises(BrokerIdInUse, match="after 0 s the session"):
                await join(store, 1, 9, None, Uuid(b"0123456789abcdef"))
            silence(former)
            address = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", 9)
            registration = BrokerRegistration.of([address], 0)
            assert await register(store, BrokerId(1), registration, patience_s=20) > before
        await former.close()

    asyncio.run(scenario())


def silence(store: ZooKeeperStore) -> None:
    """Stops the session's thread from sending, as if its process had been killed."""
    session = store._session
    session._stopped.set()
    session._connection._socket.shutdown(socket.SHUT_RDWR)
