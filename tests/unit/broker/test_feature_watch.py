"""Brokers read feature levels from the metadata store."""

import asyncio

from penstock.broker.peers.feature_watch import FeatureWatch
from penstock.clock import SystemClock
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.features import Features
from penstock.metadata.records import Feature, encode
from penstock.metadata.tree import Tree

WAIT_S = 10


def test_a_broker_receives_each_level_that_the_controller_writes() -> None:
    async def run() -> None:
        tree = Tree.in_memory(SystemClock())
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        heard: asyncio.Queue[Features] = asyncio.Queue()
        async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(FeatureWatch(store, heard.put_nowait).run())
            assert await heard.get() == Features()
            await store.create(paths.FEATURE, encode(Feature.of({"group.version": 1})))
            assert await heard.get() == Features({"group.version": 1}, 0)
            await store.set(paths.FEATURE, encode(Feature.of({"group.version": 0})))
            assert await heard.get() == Features({"group.version": 0}, 1)
            watching.cancel()
        await store.close()
        tree.close()

    asyncio.run(run())
