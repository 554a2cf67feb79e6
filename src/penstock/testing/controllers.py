"""A controller on a tree of the test's own, with brokers that only remember what they were told."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random

from penstock.clock import Clock, SystemClock
from penstock.config.broker import broker_config
from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.controller.change import StateChange
from penstock.controller.controller import Controller
from penstock.controller.membership import cluster_id, prepare_tree, register
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import MetadataStore
from penstock.metadata.tree import Tree
from penstock.types import BrokerId, Uuid


class RecordingBrokers:
    """Brokers that carry nothing out."""

    def __init__(self) -> None:
        self.changes: list[StateChange] = []

    async def apply(self, change: StateChange) -> None:
        self.changes.append(change)


class RunningController:
    """A controller in office, its store, and what it told the brokers."""

    def __init__(
        self, controller: Controller, store: MetadataStore, brokers: RecordingBrokers
    ) -> None:
        self.controller, self.store, self.brokers = controller, store, brokers

    @property
    def last_change(self) -> StateChange:
        return self.brokers.changes[-1]


@asynccontextmanager
async def running_controller(
    tree: Tree,
    *,
    brokers: Mapping[int, str | None] | Sequence[int] = (0,),
    settings: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    seed: int = 0,
) -> AsyncIterator[RunningController]:
    """Broker 0 is the controller; others are registered in the same session and die with it."""
    clock = clock or SystemClock()
    chance = Random(seed)  # noqa: S311 (placement, not a secret)
    racks = brokers if isinstance(brokers, Mapping) else dict.fromkeys(brokers)
    store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
    await prepare_tree(store)
    await cluster_id(store, None, Uuid(chance.randbytes(16)))
    for broker, rack in racks.items():
        address = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", 9092 + broker)
        registration = BrokerRegistration.of([address], clock.now_ms(), rack)
        await register(store, BrokerId(broker), registration)
    told = RecordingBrokers()
    controller = Controller(
        store,
        BrokerId(0),
        told,
        config=broker_config(settings or {}).controller,
        static=settings or {},
        clock=clock,
        chance=chance,
    )
    await controller.start()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(controller.run())
        try:
            yield RunningController(controller, store, told)
        finally:
            running.cancel()
    await store.close()
