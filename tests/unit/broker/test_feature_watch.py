"""Brokers read feature levels from the metadata store."""

import asyncio
import logging

import pytest

from penstock.broker.peers.feature_watch import FeatureWatch
from penstock.clock import SystemClock
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.features import Features
from penstock.metadata.records import Feature, encode
from penstock.metadata.tree import Tree

WAIT_S = 10


def test_a_broker_receives_each_level_that_the_controller_writes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        tree = Tree.in_memory(SystemClock())
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        received: asyncio.Queue[Features] = asyncio.Queue()
        async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(FeatureWatch(store, received.put_nowait).run())
            assert await received.get() == Features()
            await store.create(paths.FEATURE, encode(Feature.of({"group.version": 1})))
            assert await received.get() == Features({"group.version": 1}, 0)
            await store.set(paths.FEATURE, encode(Feature.of({"group.version": 0})))
            assert await received.get() == Features({"group.version": 0}, 1)
            with caplog.at_level(logging.WARNING):
                await store.set(paths.FEATURE, b"garbage")
                while not caplog.messages:
                    await asyncio.sleep(0)
            (warning,) = caplog.messages
            assert warning.startswith("/feature: does not hold what belongs there, but 'garbage'")
            await store.set(paths.FEATURE, encode(Feature.of({"group.version": 1})))
            assert await received.get() == Features({"group.version": 1}, 3)
            watching.cancel()
        await store.close()
        tree.close()

    asyncio.run(run())
