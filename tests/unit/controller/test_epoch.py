"""The controller's writes to the store: few transactions, each fenced by the controller epoch."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import pytest

from penstock.clock import SystemClock
from penstock.controller.epoch import (
    GROUP_BYTES,
    GROUP_OPERATIONS,
    ControllerEpoch,
    NotController,
    grouped,
)
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.errors import NodeExists, StoreError
from penstock.metadata.store import Answer, Create, Operation
from penstock.metadata.tree import Tree
from penstock.types import BrokerId


class CountingStore(EmbeddedStore):
    """Counts the transactions sent."""

    transactions = 0

    async def multi_many(
        self, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        wanted = list(multis)
        self.transactions += len(wanted)
        return await super().multi_many(wanted)


@asynccontextmanager
async def won_epoch() -> AsyncIterator[tuple[CountingStore, ControllerEpoch]]:
    tree = Tree.in_memory(SystemClock())
    store = CountingStore(tree, asyncio.get_running_loop().call_soon)
    try:
        epoch = await ControllerEpoch.win(store, BrokerId(0), now_ms=0)
        store.transactions = 0
        yield store, epoch
    finally:
        await store.close()
        tree.close()


def with_epoch(work: Callable[[CountingStore, ControllerEpoch], Awaitable[None]]) -> None:
    async def run() -> None:
        async with won_epoch() as (store, epoch):
            await work(store, epoch)

    asyncio.run(run())


def test_many_transactions_are_grouped_and_each_gets_its_own_answer() -> None:
    async def work(store: CountingStore, epoch: ControllerEpoch) -> None:
        multis = [[Create(f"/{n}"), Create(f"/{n}/child")] for n in range(1000)]
        answers = await epoch.write_each(multis)
        assert answers == [[f"/{n}", f"/{n}/child"] for n in range(1000)]
        assert store.transactions == 2000 // GROUP_OPERATIONS

    with_epoch(work)


def test_a_failed_transaction_does_not_fail_others_in_its_group() -> None:
    async def work(store: CountingStore, epoch: ControllerEpoch) -> None:
        await store.create("/5")
        answers = await epoch.write_each([[Create(f"/{n}"), Create(f"/{n}/c")] for n in range(200)])
        failed: dict[int, list[Answer] | StoreError] = {
            n: answer for n, answer in enumerate(answers) if isinstance(answer, StoreError)
        }
        assert list(failed) == [5]
        assert isinstance(failed[5], NodeExists)
        assert failed[5].path == "/5"
        assert not await store.exists("/5/c")
        assert await store.exists("/199/c")

    with_epoch(work)


def test_a_former_controller_writes_nothing_in_a_group() -> None:
    async def work(store: CountingStore, epoch: ControllerEpoch) -> None:
        await store.delete(paths.CONTROLLER)
        await ControllerEpoch.win(store, BrokerId(1), now_ms=0)
        with pytest.raises(NotController):
            await epoch.write_each([[Create(f"/{n}")] for n in range(10)])
        assert not await store.exists("/0")

    with_epoch(work)


def sizes(*multis: list[Operation]) -> list[int]:
    return [len(group) for group in grouped(multis)]


def test_groups_stay_small() -> None:
    half = Create("/a", b"x" * (GROUP_BYTES // 2))
    whole = Create("/a", b"x" * (GROUP_BYTES + 1))
    small: Operation = Create("/a")
    assert sizes([half], [half], [small], [half]) == [3, 1]
    assert sizes([small], [whole], [small]) == [1, 1, 1]
    assert sizes([small] * GROUP_OPERATIONS, [small], [small]) == [1, 2]
    assert sizes() == []
