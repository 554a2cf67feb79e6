"""A real controller on a test's own metadata tree, with fake brokers that record state changes."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Container,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from random import Random

from penstock.clock import Clock, SystemClock
from penstock.config.broker import broker_config
from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.controller.broker_registration import cluster_id, prepare_tree, register
from penstock.controller.controller import Controller
from penstock.controller.state_change import StateChange
from penstock.errors import StorageError
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.errors import AccessDenied, ConnectionLost, StoreError
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import Answer, Operation
from penstock.metadata.tree import Tree
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.enums import ElectionType


class RecordingBrokers:
    """Brokers that only record state changes; live ones confirm the deletion of replicas."""

    def __init__(self) -> None:
        self.changes: list[StateChange] = []
        self.controller: Controller
        self.failed: set[TopicPartition] = set()
        """The controller's own replicas in a failed log directory."""
        self.resignations = 0

    async def apply(self, change: StateChange) -> Collection[TopicPartition]:
        self.changes.append(change)
        for each in change.stopped:
            for broker in each.replicas:
                if (
                    each.delete
                    and broker in change.image.brokers
                    and (broker, each.topic_partition) not in self._not_deleted
                ):
                    self.controller.replicas_deleted(broker, [each.topic_partition])
        for _ in range(3):  # let responses arrive while the controller continues
            await asyncio.sleep(0)
        return self.failed

    @property
    def _not_deleted(self) -> set[tuple[BrokerId, TopicPartition]]:
        return {(self.controller.broker, each) for each in self.failed}

    def resign(self) -> None:
        self.resignations += 1


class CrashError(Exception):
    """The simulated process crashed."""


class CrashingStore(EmbeddedStore):
    """Accepts `writes` more transactions, then crashes, even in the middle of a batch."""

    def __init__(self, tree: Tree, call_soon: Callable[..., object], writes: int) -> None:
        super().__init__(tree, call_soon)
        self._left = writes

    async def multi_many(
        self, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        wanted = list(multis)
        done = await super().multi_many(wanted[: self._left])
        self._left -= len(done)
        if len(done) < len(wanted):
            raise CrashError
        return done


class LossyStore(EmbeddedStore):
    """Loses the connection during a write to the node at `loses`, if set.

    Its disk is full after `room` more writes, if set.
    """

    loses: str | None = None
    takes_place = False
    """Whether the server applies the lost write, without the client learning of it."""
    room: int | None = None
    denied: str | None = None
    """The node to which an ACL refuses writes."""
    denials = 0

    async def multi_many(
        self, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        wanted = list(multis)
        if self.room is not None:
            if self.room == 0:
                raise StorageError("the disk is full")
            self.room -= 1
        if self.denied is not None:
            self.denials += any(map(self._is_denied, wanted))
            answers = await super().multi_many(
                [() if self._is_denied(multi) else multi for multi in wanted]
            )
            return [
                AccessDenied(self.denied) if self._is_denied(multi) else answer
                for multi, answer in zip(wanted, answers, strict=True)
            ]
        if self.loses not in {each.path for multi in wanted for each in multi}:
            return await super().multi_many(wanted)
        self.loses = None
        if self.takes_place:
            await super().multi_many(wanted)
        return [ConnectionLost(multi[0].path) for multi in wanted]

    def _is_denied(self, multi: Sequence[Operation]) -> bool:
        return any(each.path == self.denied for each in multi)


class RunningController:
    """An active controller, its store, and the state changes sent to brokers."""

    def __init__(
        self, controller: Controller, store: EmbeddedStore, brokers: RecordingBrokers
    ) -> None:
        self.controller, self.store, self.brokers = controller, store, brokers

    async def settled(self) -> None:
        """Wait until the controller has processed its queue."""
        for _ in range(2):  # the brokers respond to the first round
            await self.controller.elect_leaders(ElectionType.PREFERRED, [])

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
    writes: int | None = None,
    crashed: Container[int] = (),
) -> AsyncIterator[RunningController]:
    """Run a controller on broker 0; the other brokers are registered in the same session, and
    expire with it.

    The `crashed` brokers register after an unclean shutdown.

    With `writes`, the store crashes after that many transactions, including those of the start.
    """
    clock = clock or SystemClock()
    chance = Random(seed)  # noqa: S311 (placement, not a secret)
    racks = brokers if isinstance(brokers, Mapping) else dict.fromkeys(brokers)
    call_soon = asyncio.get_running_loop().call_soon
    store = (
        LossyStore(tree, call_soon) if writes is None else CrashingStore(tree, call_soon, writes)
    )
    try:
        await prepare_tree(store)
        await cluster_id(store, None, Uuid(chance.randbytes(16)))
        for broker, rack in racks.items():
            address = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", 9092 + broker)
            registration = BrokerRegistration.of(
                [address], clock.now_ms(), rack, unclean_shutdown=broker in crashed
            )
            await register(store, BrokerId(broker), registration)
        recording = RecordingBrokers()
        controller = Controller(
            store,
            BrokerId(0),
            recording,
            config=broker_config(settings or {}).controller,
            static=settings or {},
            clock=clock,
            chance=chance,
        )
        recording.controller = controller
        await controller.start()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(controller.run())
            try:
                yield RunningController(controller, store, recording)
            finally:
                running.cancel()
    finally:
        await store.close()
