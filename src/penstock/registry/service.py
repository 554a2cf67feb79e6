"""One instance of the registry: follows the topic, takes part in the election, and makes changes,
or redirects them to the elected instance.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeAlias, TypeVar

from penstock.client.cluster import Client
from penstock.errors import ErrorCode, KafkaError
from penstock.registry import errors
from penstock.registry.compatibility import Parse
from penstock.registry.election import Election, Identity
from penstock.registry.errors import RegistryError
from penstock.registry.parsing import Parser
from penstock.registry.records import TOPIC, RegistryRecord
from penstock.registry.schema import Schema
from penstock.registry.state import RegistryState
from penstock.registry.topic import SchemaLog, create_schemas_topic
from penstock.types import Offset

GROUP: Final = "schema-registry"
LEADER_S: Final = 15.0
READ_TO_END_S: Final = 5.0
GIVE_WAY_S: Final = 5.0
FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Elsewhere(Exception):
    """Another instance is the writer."""

    def __init__(self, leader: Identity) -> None:
        super().__init__(leader.url)
        self.leader = leader


Decide: TypeAlias = Callable[[RegistryState, Parse], tuple[Sequence[RegistryRecord], T]]


class RegistryService:
    """Run `run` in a task group, and call all methods in its event loop."""

    def __init__(
        self, client: Client, own: Identity, *, topic: str = TOPIC, group: str = GROUP
    ) -> None:
        self._client, self._own, self._topic, self.group = client, own, topic, group
        self.log = SchemaLog(client, topic)
        self._parser = Parser(lambda: self.log.state)
        self._election = Election(client, group, own, self._on_leader)
        self._leader: Identity | None = None
        self._known = asyncio.Condition()
        self._writing, self._reading = asyncio.Lock(), asyncio.Lock()
        self._changes, self._settled = 0, asyncio.Event()
        self._settled.set()
        self._threads = ThreadPoolExecutor(1, "registry")

    @property
    def state(self) -> RegistryState:
        return self.log.state

    @property
    def is_ready(self) -> bool:
        return self.log.is_loaded and self._leader is not None

    async def run(self) -> None:
        """Follow the topic and take part in the election until cancelled."""
        await create_schemas_topic(self._client, self._topic)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.log.follow())
                tasks.create_task(self._election.run())
        finally:
            self.log.give_up()
            self._threads.shutdown(wait=False)

    async def schema(self, number: int) -> Schema | None:
        """The schema with this id. Clients take None as final, so an instance that may lag behind
        reads to the end of the topic first.
        """
        found = self.state.schema(number)
        if found is not None:
            return found
        try:
            async with asyncio.timeout(READ_TO_END_S):
                await self.log.read_to_end()
        except (KafkaError, TimeoutError):
            raise errors.lags_behind() from None
        return self.state.schema(number)

    async def read(self, ask: Callable[[RegistryState, Parse], T]) -> T:
        """Run `ask`, which changes nothing: one at a time, and after changes.

        A change waits for the state at each step, and a long read between two steps would hold it
        up for seconds.
        """
        async with self._reading:
            with suppress(TimeoutError):  # a change that cannot be written must not stop reads
                async with asyncio.timeout(GIVE_WAY_S):
                    await self._settled.wait()
            return await self._ask(ask)

    async def _ask(self, ask: Callable[[RegistryState, Parse], T]) -> T:
        """Run `ask` in another thread, since parsing may take long."""
        loop = asyncio.get_running_loop()
        async with self.log.changing:
            return await loop.run_in_executor(self._threads, ask, self.state, self._parser)

    async def change(self, decide: Decide[T]) -> tuple[T, Offset | None]:
        """Decide, write and replay; raises `Elsewhere` if another instance is the writer.

        Returns the answer, and the offset after the written records, if there are any.
        """
        leader = await self._known_leader()
        if leader != self._own:
            raise Elsewhere(leader)
        self._changes += 1
        self._settled.clear()
        try:
            return await self._changed(decide)
        finally:
            self._changes -= 1
            if not self._changes:
                self._settled.set()

    async def _changed(self, decide: Decide[T]) -> tuple[T, Offset | None]:
        async with self._writing:
            try:
                if not self.log.is_writer:
                    await self.log.take_over()
                records, answer = await self._ask(decide)
                if records and not self.log.is_writer:
                    # Another instance was elected in the meantime.
                    raise RegistryError(50003, "This instance does not lead any more; try again")
                end = await self.log.append(records) if records else None
            except KafkaError as error:
                if error.code in FENCED:
                    # Another instance has taken over: learn its identity from the group before any
                    # other change.
                    self._leader = None
                    self._election.rejoin()
                if error.code is ErrorCode.MESSAGE_TOO_LARGE:
                    raise RegistryError(42209, "The schema is too large for the topic") from None
                logger.warning("a change was not written: %s", error)
                raise errors.store_failed(error) from None
            except TimeoutError:
                raise RegistryError(50002, "The operation timed out; try it again") from None
            return answer, end

    async def _known_leader(self) -> Identity:
        try:
            async with asyncio.timeout(LEADER_S), self._known:
                await self._known.wait_for(lambda: self._leader is not None)
        except TimeoutError:
            raise RegistryError(50004, "No instance of the registry leads now") from None
        assert self._leader is not None
        return self._leader

    async def _on_leader(self, leader: Identity | None) -> None:
        if leader != self._leader:
            logger.info("schemas are written by %s", "nobody" if leader is None else leader.url)
        if leader != self._own:
            self.log.give_up()
        async with self._known:
            self._leader = leader
            self._known.notify_all()
