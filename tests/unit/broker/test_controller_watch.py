"""A controller whose process is gone is removed before its session ends."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing

from penstock.broker.peers.controller_watch import depose
from penstock.clock import SystemClock
from penstock.controller.broker_registration import prepare_tree
from penstock.controller.epoch import ControllerEpoch
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.tree import Tree
from penstock.types import BrokerId

GONE = BrokerId(1)
Scenario = Callable[[EmbeddedStore, EmbeddedStore], Awaitable[None]]


def with_stores(scenario: Scenario) -> None:
    """Our session, and the session of another broker, the controller."""

    async def run() -> None:
        call_soon = asyncio.get_running_loop().call_soon
        with closing(Tree.in_memory(SystemClock())) as tree:
            ours, theirs = EmbeddedStore(tree, call_soon), EmbeddedStore(tree, call_soon)
            await prepare_tree(ours)
            await ControllerEpoch.win(theirs, GONE, now_ms=0)
            await scenario(ours, theirs)

    asyncio.run(run())


def test_a_dead_controller_loses_its_role_and_registration_at_once() -> None:
    async def scenario(ours: EmbeddedStore, theirs: EmbeddedStore) -> None:
        await theirs.create(paths.broker(GONE), b"{}", ephemeral=True)
        await depose(ours, GONE)
        assert not await ours.exists(paths.CONTROLLER)
        assert not await ours.exists(paths.broker(GONE))

    with_stores(scenario)


def test_a_controller_that_has_registered_again_stays_registered() -> None:
    async def scenario(ours: EmbeddedStore, _theirs: EmbeddedStore) -> None:
        await ours.create(paths.broker(GONE), b"{}", ephemeral=True)  # in another session
        await depose(ours, GONE)
        assert not await ours.exists(paths.CONTROLLER)
        assert await ours.exists(paths.broker(GONE))

    with_stores(scenario)


def test_another_controller_is_left_alone() -> None:
    async def scenario(ours: EmbeddedStore, theirs: EmbeddedStore) -> None:
        await theirs.create(paths.broker(GONE), b"{}", ephemeral=True)
        await depose(ours, BrokerId(2))
        assert await ours.exists(paths.CONTROLLER)
        assert await ours.exists(paths.broker(GONE))

    with_stores(scenario)
