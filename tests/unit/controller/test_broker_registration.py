"""Registration of a broker, and ids that are in use."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.controller.broker_registration import BrokerIdInUse, prepare_tree, register
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.errors import NodeExists, NotConnected
from penstock.metadata.records import decode
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import SessionState
from penstock.metadata.tree import Tree
from penstock.types import BrokerId

BROKER = BrokerId(1)


def at(port: int, timestamp_ms: int = 0) -> BrokerRegistration:
    address = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", port)
    return BrokerRegistration.of([address], timestamp_ms)


def with_stores(
    tree: Tree, scenario: Callable[[EmbeddedStore, EmbeddedStore], Awaitable[None]]
) -> None:
    async def run() -> None:
        call_soon = asyncio.get_running_loop().call_soon
        store, other = EmbeddedStore(tree, call_soon), EmbeddedStore(tree, call_soon)
        await prepare_tree(store)
        await scenario(store, other)

    asyncio.run(run())


def test_a_registration_by_this_session_is_recognized(tree: Tree) -> None:
    async def scenario(store: EmbeddedStore, _: EmbeddedStore) -> None:
        first = await register(store, BROKER, at(9092, 1))
        assert await register(store, BROKER, at(9092, 2)) == first
        node = await store.get(paths.broker(BROKER))
        assert decode(BrokerRegistration, node) == at(9092, 2)

    with_stores(tree, scenario)


@pytest.mark.row("A008")
def test_a_live_broker_keeps_its_id(tree: Tree) -> None:
    async def scenario(store: EmbeddedStore, other: EmbeddedStore) -> None:
        await register(other, BROKER, at(9093))
        with pytest.raises(BrokerIdInUse, match=r"at PLAINTEXT://127\.0\.0\.1:9093; stop that"):
            await register(store, BROKER, at(9092), patience_s=60)

    with_stores(tree, scenario)


def test_registration_waits_for_the_session_of_the_former_process(tree: Tree) -> None:
    async def scenario(store: EmbeddedStore, other: EmbeddedStore) -> None:
        before = await register(other, BROKER, at(9092, 1))
        path = paths.broker(BROKER)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(register(store, BROKER, at(9092, 2), patience_s=60))
            # A change of the node is not its deletion.
            await other.set(path, (await other.get(path)).data)
            with pytest.raises(NodeExists):
                await store.create(path)
            await other.close()
        assert waiting.result() > before
        assert (await store.get(path)).ephemeral_owner == store.session_id

    with_stores(tree, scenario)


def test_a_registration_removed_while_the_store_is_away_is_noticed(tree: Tree) -> None:
    """No watch reports changes between two connections."""

    class Away(EmbeddedStore):
        is_away = False

        async def exists(self, path: str) -> bool:
            if self.is_away:
                raise NotConnected(path)
            return await super().exists(path)

        def come_back(self) -> None:
            self.is_away = False
            self._session_watches.notify(SessionState.CONNECTED)

    async def main() -> None:
        call_soon = asyncio.get_running_loop().call_soon
        store, other = Away(tree, call_soon), EmbeddedStore(tree, call_soon)
        await prepare_tree(store)
        await register(other, BROKER, at(9092, 1))
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(register(store, BROKER, at(9092, 2), patience_s=2))
            await asyncio.sleep(0)
            store.is_away = True
            tree.listeners.remove(store._notify)  # no notification reaches it
            await other.close()
            tree.listeners.append(store._notify)
            await asyncio.sleep(0)
            store.come_back()
        assert waiting.result() > 0

    asyncio.run(main())


def test_registration_fails_when_the_former_session_does_not_end_in_time(tree: Tree) -> None:
    async def scenario(store: EmbeddedStore, other: EmbeddedStore) -> None:
        await register(other, BROKER, at(9092))
        with pytest.raises(BrokerIdInUse, match=r"after 0\.01 s the session of its former process"):
            await register(store, BROKER, at(9092), patience_s=0.01)

    with_stores(tree, scenario)
