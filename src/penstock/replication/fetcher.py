"""Fetches partitions from one leader, many per request, and appends the records.

One fetch is in flight at a time. It waits at the leader until there are records, at most
`replica.fetch.wait.max.ms`, so a caught-up follower costs two requests a second. A partition that
is added meanwhile must not wait that long: any other request on the connection ends the wait.
Otherwise a new partition, or one with a new leader, would take no acks=all write for that time.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from msgspec import Struct

from penstock.client.connection import Connection
from penstock.client.errors import check
from penstock.clock import Clock
from penstock.config.replication import ReplicationConfig
from penstock.errors import ErrorCode, KafkaError, ProtocolError, StorageError
from penstock.log.files import OutOfFiles
from penstock.log.partition_log import PartitionLog
from penstock.replication.fetch_session import SESSION_LOST, FollowerSession, PartitionFetch
from penstock.replication.follower import (
    FollowerLogs,
    NextStep,
    is_next_fetch,
    move_into_leader_range,
    next_fetch,
    process_partition_data,
)
from penstock.replication.partition import Partition
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

logger = logging.getLogger(__name__)

LATEST, EARLIEST = -1, -2
THROTTLE_CHECK_MS = 100
"""Longest wait before a throttled replica is checked again: the rate may have changed."""
FIRST_BACKOFF_MS = 10
"""After a partition's first failure: usually its leader does not know yet that it leads."""
TURN_MS = 5
"""Other work on the loop gets its turn after this time: each partition of a response may begin a
segment, whose files take a millisecond.
"""
INTERRUPT_DELAY_S = 0.005
"""Partitions are added in groups; one interruption serves those added within this time."""


class Connect(Protocol):
    """Opens a connection to the leader's current address."""

    async def __call__(self) -> Connection: ...


class ReplicaQuota(Protocol):
    """Limits how fast lagging replicas may fetch."""

    def delay_ms(self, partition: Partition, most_ms: int) -> int:
        """How long to pause the partition, at most `most_ms`, because it exceeded its rate."""

    def record(self, partition: Partition, size_bytes: int) -> None:
        """Count fetched bytes."""


class UnlimitedQuota:
    """No limit."""

    def delay_ms(self, partition: Partition, most_ms: int) -> int:  # noqa: ARG002
        return 0

    def record(self, partition: Partition, size_bytes: int) -> None:
        pass


class FetcherContext(Struct, frozen=True):
    """The parts of its broker that a fetcher uses."""

    broker_id: BrokerId
    broker_epoch: Callable[[], int]
    config: Callable[[], ReplicationConfig]
    logs: FollowerLogs
    clock: Clock
    flush: Callable[[PartitionLog], Future[int]]
    """Syncs what the log holds now; see `Flusher.request`."""
    quota: ReplicaQuota = UnlimitedQuota()


class PartitionFetchState(Struct):
    """A fetched partition; it backs off until `ready_ms` after a failure."""

    partition: Partition
    ready_ms: int = 0
    backoff_ms: int = 0
    """The latest backoff; 0 if the last fetch succeeded."""
    fetch: PartitionFetch | None = None
    """Its part of the last request, reused as long as nothing has changed."""


class Fetcher:
    """Belongs to the event loop; `run` is its own task. Partitions come and go meanwhile."""

    def __init__(self, leader: int, context: FetcherContext, connect: Connect) -> None:
        self.leader = leader
        self._context, self._connect = context, connect
        self._states: dict[TopicPartition, PartitionFetchState] = {}
        self._unflushed: set[TopicPartition] = set()
        """Partitions that have to be on the disk before they are fetched again."""
        self._session = FollowerSession()
        self._connection: Connection | None = None
        self._changed = asyncio.Event()
        self._fetching = False
        """Whether a fetch is in flight."""
        self._interrupt: asyncio.TimerHandle | None = None

    @property
    def is_used(self) -> bool:
        """Whether it has any partitions."""
        return bool(self._states)

    def add(self, partition: Partition) -> None:
        self._states[partition.topic_partition] = PartitionFetchState(partition)
        if partition.log.flush_due:
            self._unflushed.add(partition.topic_partition)
        self._changed.set()
        if self._fetching and self._interrupt is None:
            loop = asyncio.get_running_loop()
            self._interrupt = loop.call_later(INTERRUPT_DELAY_S, self._interrupt_fetch)

    def remove(self, topic_partition: TopicPartition) -> None:
        self._states.pop(topic_partition, None)

    def _interrupt_fetch(self) -> None:
        """Have the leader answer now: a waiting fetch gives way to any other request."""
        self._interrupt = None
        connection = self._connection
        if self._fetching and connection is not None and connection.is_open:
            connection.interrupt_wait()

    async def run(self) -> None:
        """Fetch until cancelled."""
        try:
            while True:
                self._changed.clear()
                if self._unflushed:
                    await self._flush()
                wanted, wait_ms = self._ready()
                if wanted:
                    await self._round(wanted, wait_ms)
                else:
                    await self._wait_until_ready(wait_ms)
        finally:
            self.break_connection()

    async def _flush(self) -> None:
        """Sync the logs that `flush.messages` requires: a fetch acknowledges all records before it.

        A partition that cannot be synced, for example because descriptors ran out, is not fetched
        until it is.
        """
        now_ms = self._context.clock.monotonic_ms()
        self._unflushed &= self._states.keys()
        states = {
            each: state
            for each in self._unflushed
            if (state := self._states[each]).ready_ms <= now_ms
        }
        self._unflushed -= states.keys()
        flushes = {
            topic_partition: self._context.flush(state.partition.log)
            for topic_partition, state in states.items()
            if state.partition.log.flush_due
        }
        for topic_partition, flush in flushes.items():
            try:
                await asyncio.wrap_future(flush)
            except (OutOfFiles, KafkaError) as error:  # no more files, or a damaged batch
                logger.warning("cannot fetch %s yet: %s", topic_partition, error)
                self._unflushed.add(topic_partition)
                self._schedule(topic_partition, states[topic_partition], NextStep.LATER)
            except StorageError as error:
                self._give_up(topic_partition, error)

    def _give_up(self, topic_partition: TopicPartition, error: StorageError) -> None:
        """Stop fetching: the partition's directory is offline. Partitions in others go on."""
        logger.error("%s is no longer fetched: %s", topic_partition, error)
        self.remove(topic_partition)

    def _ready(self) -> tuple[dict[TopicPartition, PartitionFetch], int | None]:
        """The partitions to fetch now, and when the next one is ready; None: none is waiting."""
        now_ms = self._context.clock.monotonic_ms()
        max_bytes = self._context.config().replica_fetch_max_bytes
        wanted: dict[TopicPartition, PartitionFetch] = {}
        soonest: int | None = None
        for topic_partition, state in self._states.items():
            partition = state.partition
            if topic_partition in self._unflushed and state.ready_ms <= now_ms:
                soonest = now_ms  # added, or its backoff ended, while others were synced
                continue
            if state.ready_ms <= now_ms:
                state.ready_ms = now_ms + self._context.quota.delay_ms(partition, THROTTLE_CHECK_MS)
            if state.ready_ms <= now_ms:
                fetch = state.fetch
                if fetch is None or not is_next_fetch(fetch.request, partition, max_bytes):
                    request = next_fetch(partition, max_bytes)
                    fetch = state.fetch = PartitionFetch(partition.topic_id, request)
                wanted[topic_partition] = fetch
            elif soonest is None or state.ready_ms < soonest:
                soonest = state.ready_ms
        return wanted, None if soonest is None else soonest - now_ms

    async def _wait_until_ready(self, wait_ms: int | None) -> None:
        """Wait until a partition is added, or one is ready again."""
        try:
            async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _round(
        self, wanted: dict[TopicPartition, PartitionFetch], soonest_ms: int | None
    ) -> None:
        """Fetch these; the response comes before the next partition is ready."""
        config = self._context.config()
        wait_ms = config.replica_fetch_wait_max_ms
        try:
            connection = self._connection
            if connection is None:
                connection = self._connection = await self._connect()
            self._fetching = True
            response = await connection.call(
                self._request(wanted, wait_ms if soonest_ms is None else min(wait_ms, soonest_ms)),
                FetchResponse,
                timeout_ms=config.replica_socket_timeout_ms,
                as_view=True,  # appended before the next fetch is sent, so no copy is needed
            )
            if response.error_code in SESSION_LOST:
                self._session.reset()
                return
            check(response.error_code, f"Fetch of broker {self.leader}")
        except (KafkaError, ProtocolError) as error:
            logger.warning("cannot fetch from broker %d: %s", self.leader, error)
            self.break_connection()
            await asyncio.sleep(config.replica_fetch_backoff_ms / 1000)
            return
        finally:
            self._fetching = False
        self._session.answered(response.session_id)
        lost = await self._process_response(wanted, response)
        for topic_partition in lost:
            await self._find_range(connection, topic_partition)

    def break_connection(self) -> None:
        """Close the connection; the next fetch opens a new one and a new session."""
        self._session.reset()
        if self._connection is not None:
            self._connection.abort()
            self._connection = None

    def _request(self, wanted: dict[TopicPartition, PartitionFetch], wait_ms: int) -> FetchRequest:
        context, config = self._context, self._context.config()
        session = self._session.next(wanted)
        return FetchRequest(
            replica_id=context.broker_id,
            replica_state=ReplicaState(
                replica_id=context.broker_id, replica_epoch=context.broker_epoch()
            ),
            max_wait_ms=wait_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=session.session_id,
            session_epoch=session.session_epoch,
            topics=session.topics,
            forgotten_topics_data=session.forgotten,
        )

    async def _process_response(
        self, wanted: dict[TopicPartition, PartitionFetch], response: FetchResponse
    ) -> list[TopicPartition]:
        """Process every partition; returns those whose end is outside the leader's log."""
        names = {fetch.topic_id: topic_partition.topic for topic_partition, fetch in wanted.items()}
        outside, clock = [], self._context.clock
        turn_ends_ms = clock.monotonic_ms() + TURN_MS
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                topic_partition = TopicPartition(name, data.partition_index)
                if (
                    topic_partition in wanted
                    and self._process(topic_partition, wanted[topic_partition], data)
                    is NextStep.FIND_RANGE
                ):
                    outside.append(topic_partition)
                if clock.monotonic_ms() > turn_ends_ms:
                    await asyncio.sleep(0)
                    turn_ends_ms = clock.monotonic_ms() + TURN_MS
        return outside

    def _process(
        self, topic_partition: TopicPartition, fetch: PartitionFetch, data: PartitionData
    ) -> NextStep:
        state = self._states.get(topic_partition)
        if state is None or state.partition.topic_id != fetch.topic_id:
            return NextStep.FETCH  # removed or recreated meanwhile
        context = self._context
        try:
            step = process_partition_data(
                state.partition, fetch.request, data, context.logs, context.clock.now_ms()
            )
        except OutOfFiles as error:  # its directory is online, so nothing else would retry
            level = logging.DEBUG if state.backoff_ms else logging.WARNING  # once, not each try
            logger.log(level, "cannot fetch %s yet: %s", topic_partition, error)
            step = NextStep.LATER
        except StorageError as error:
            self._give_up(topic_partition, error)
            return NextStep.FETCH
        except KafkaError as error:
            logger.error(
                "%s: records from broker %d are unusable: %s", topic_partition, self.leader, error
            )
            step = NextStep.LATER
        if data.records:
            context.quota.record(state.partition, len(data.records))
            if state.partition.log.flush_due:
                self._unflushed.add(topic_partition)
        self._schedule(topic_partition, state, step)
        return step

    def _schedule(
        self, topic_partition: TopicPartition, state: PartitionFetchState, step: NextStep
    ) -> None:
        match step:
            case NextStep.LATER | NextStep.FIND_RANGE:
                most_ms = self._context.config().replica_fetch_backoff_ms
                state.backoff_ms = min(most_ms, 2 * state.backoff_ms or FIRST_BACKOFF_MS)
                state.ready_ms = self._context.clock.monotonic_ms() + state.backoff_ms
            case NextStep.AWAIT_LEADER:
                if self._states.get(topic_partition) is state:
                    self.remove(topic_partition)
            case NextStep.FETCH:
                state.backoff_ms = 0

    async def _find_range(self, connection: Connection, topic_partition: TopicPartition) -> None:
        """Ask where the leader's log ends and begins, and move the follower's end there."""
        state = self._states.get(topic_partition)
        if state is None:
            return
        partition, context = state.partition, self._context
        epoch = partition.leader_epoch
        try:
            end = await self._offset(connection, topic_partition, epoch, LATEST)
            start = await self._offset(connection, topic_partition, epoch, EARLIEST)
            if self._states.get(topic_partition) is state and partition.leader_epoch == epoch:
                move_into_leader_range(partition, start, end, context.logs, context.clock.now_ms())
                state.ready_ms = 0
        except OutOfFiles as error:
            logger.warning("cannot fetch %s yet: %s", topic_partition, error)
        except StorageError as error:
            self._give_up(topic_partition, error)
        except KafkaError as error:
            logger.warning(
                "%s: cannot get the range of its leader's log: %s", topic_partition, error
            )

    async def _offset(
        self,
        connection: Connection,
        topic_partition: TopicPartition,
        leader_epoch: int,
        timestamp: int,
    ) -> int:
        fetch = ListOffsetsPartition(
            partition_index=topic_partition.partition,
            current_leader_epoch=leader_epoch,
            timestamp=timestamp,
        )
        response = await connection.call(
            ListOffsetsRequest(
                replica_id=self._context.broker_id,
                topics=[ListOffsetsTopic(name=topic_partition.topic, partitions=[fetch])],
            ),
            ListOffsetsResponse,
            timeout_ms=self._context.config().replica_socket_timeout_ms,
        )
        answers = [part for topic in response.topics for part in topic.partitions]
        code = answers[0].error_code if answers else ErrorCode.UNKNOWN_SERVER_ERROR
        check(code, f"ListOffsets of {topic_partition}")
        return answers[0].offset
