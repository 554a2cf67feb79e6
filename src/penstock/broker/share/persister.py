"""Calls the share coordinator, on this broker or another, and retries while that may help."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from penstock.broker.cluster import Cluster
from penstock.broker.parked import Parked
from penstock.broker.peers.connection import PeerConnection
from penstock.broker.share.state_calls import StateCall, reply_in
from penstock.broker.waiters import Waiters
from penstock.client.errors import RequestTimedOut
from penstock.clock import Clock
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.result import PendingReply
from penstock.coordinator.share.coordinator import TOPIC, ShareCoordinator
from penstock.coordinator.share.state import SharePartitionKey
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.records import NO_LEADER
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, TopicPartition

T = TypeVar("T")

WRITE_MS = 5_000
"""How long one attempt may take."""
PATIENCE_MS = 10_000
RETRY_S = 0.05
RETRIABLE = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
}


class Persister:
    """Belongs to the event loop. `ensure_topic` creates `__share_group_state` if it is missing."""

    def __init__(
        self,
        broker_id: BrokerId,
        cluster: Cluster,
        partitions: Partitions,
        coordinator: ShareCoordinator,
        waiters: Waiters,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        connection_to: Callable[[BrokerId], PeerConnection],
    ) -> None:
        self._broker_id, self._cluster, self._partitions = broker_id, cluster, partitions
        self._coordinator, self._waiters, self._clock = coordinator, waiters, clock
        self._tasks, self._connection_to = tasks, connection_to
        self._connections: dict[BrokerId, PeerConnection] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._is_open = True
        self.ensure_topic: Callable[[], Awaitable[None]] | None = None

    def call(self, call: StateCall[T], then: Callable[[T | KafkaError], object]) -> None:
        """Call `then` with the reply: at once if the coordinator is here and has committed it."""
        pending = self._here(call)
        if pending is not None:
            reply = self._coordinator.runtime.reply(pending)
            if reply is not None and not _is_retriable(reply):
                then(reply)
                return
        self.run(self._later(call, pending, then))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it in a task until it ends, or until this broker stops."""
        if not self._is_open:
            work.close()
            return
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _later(
        self,
        call: StateCall[T],
        pending: PendingReply[T] | None,
        then: Callable[[T | KafkaError], object],
    ) -> None:
        if pending is not None:
            reply = await self._committed(pending)
            if not _is_retriable(reply):
                then(reply)
                return
        then(await self.call_with_retries(call))

    async def call_with_retries(
        self, call: StateCall[T], until_ms: int | None = None
    ) -> T | KafkaError:
        """The reply; retries for some seconds while the coordinator moves or loads, or until
        `until_ms` of the monotonic clock.
        """
        if until_ms is None:
            until_ms = self._clock.monotonic_ms() + PATIENCE_MS
        while True:
            reply = await self._once(call)
            if not _is_retriable(reply) or self._clock.monotonic_ms() >= until_ms:
                return reply
            await asyncio.sleep(RETRY_S)

    def close(self) -> None:
        self._is_open = False
        for task in list(self._running):
            task.cancel()
        for connection in self._connections.values():
            connection.drop()

    async def _once(self, call: StateCall[T]) -> T | KafkaError:
        if TOPIC not in self._cluster.image.topics and self.ensure_topic is not None:
            try:
                await self.ensure_topic()
            except KafkaError as error:
                return error
        pending = self._here(call)
        if pending is not None:
            return await self._committed(pending)
        state_partition = self._state_partition(call.key)
        known = self._cluster.image.partition(state_partition)
        if known is None or known.leader in {NO_LEADER, self._broker_id}:
            return CoordinatorNotAvailable(f"{state_partition} has no leader")
        try:
            # Includes the wait for earlier calls on the connection.
            async with asyncio.timeout(2 * WRITE_MS / 1000):
                response = await self.connection(known.leader).call(
                    call.request(), call.response(), timeout_ms=2 * WRITE_MS
                )
        except TimeoutError:
            return RequestTimedOut(f"broker {known.leader} has not answered for {call.key}")
        except KafkaError as error:
            return error
        return reply_in(call, response)

    def connection(self, broker: BrokerId) -> PeerConnection:
        if broker not in self._connections:
            self._connections[broker] = self._connection_to(broker)
        return self._connections[broker]

    def has_coordinator(self, key: SharePartitionKey) -> bool:
        """Whether the state partition of this share-partition has a known leader."""
        known = self._cluster.image.partition(self._state_partition(key))
        return known is not None and known.leader != NO_LEADER

    def _state_partition(self, key: SharePartitionKey) -> TopicPartition:
        return TopicPartition(TOPIC, self._coordinator.partition_of(str(key)))

    def _here(self, call: StateCall[T]) -> PendingReply[T] | None:
        """The pending reply of the coordinator on this broker; None if it is on another."""
        here = self._partitions.find(*self._state_partition(call.key))
        return call.here(self._coordinator) if here is not None and here.leads else None

    async def _committed(self, pending: PendingReply[T]) -> T | KafkaError:
        runtime = self._coordinator.runtime

        def attempt() -> T | KafkaError | None:
            return runtime.reply(pending)

        def expire() -> KafkaError:
            return CoordinatorNotAvailable("not enough replicas have the state yet")

        reply = attempt()
        if reply is not None:
            return reply
        keys = [pending, TopicPartition(TOPIC, pending.partition)]
        parked: Parked[T | KafkaError] = Parked(keys, WRITE_MS, attempt, expire)
        return await self._waiters.future(parked)


def _is_retriable(reply: object) -> bool:
    """Whether a retry may help."""
    return isinstance(reply, KafkaError) and reply.code in RETRIABLE
