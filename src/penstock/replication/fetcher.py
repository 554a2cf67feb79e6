"""Copies partitions from one leader: asks for many at once, and appends what comes.

One request is on its way at a time, and it waits at the leader until there is something
(`replica.fetch.wait.max.ms`), so a follower that has everything costs two requests a second.
A partition that comes meanwhile must not wait for that: a word to the leader calls it back.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from penstock.client.connection import Connection
from penstock.client.errors import check
from penstock.clock import Clock
from penstock.config.replication import ReplicationConfig
from penstock.errors import ErrorCode, KafkaError, ProtocolError, StorageError
from penstock.replication.fetch_session import LOST, Asked, FollowerSession
from penstock.replication.follower import (
    FollowerLogs,
    Next,
    is_next_fetch,
    move_within,
    next_fetch,
    take,
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
HELD_BACK_MS = 100
"""When to look again at the latest whether a throttled replica may go on: its rate may change."""
FIRST_REST_MS = 10
"""After a partition's first failure: as a rule its leader has yet to hear that it leads."""
CALL_BACK_S = 0.005
"""Partitions come in numbers; what comes within this time is called back for once."""


class Connect(Protocol):
    """Opens a connection to the leader, wherever it is now."""

    async def __call__(self) -> Connection: ...


class Pace(Protocol):
    """How fast replicas may be copied that have to catch up."""

    def owes_ms(self, partition: Partition, most_ms: int) -> int:
        """For how long to hold it back, since too much has come lately; up to `most_ms`."""

    def passed(self, partition: Partition, size_bytes: int) -> None:
        """So much has come."""


class Unlimited:
    """As fast as it goes."""

    def owes_ms(self, partition: Partition, most_ms: int) -> int:  # noqa: ARG002
        return 0

    def passed(self, partition: Partition, size_bytes: int) -> None:
        pass


class Follower(Struct, frozen=True):
    """What a fetcher needs of its broker."""

    broker_id: BrokerId
    broker_epoch: Callable[[], int]
    config: Callable[[], ReplicationConfig]
    logs: FollowerLogs
    clock: Clock
    pace: Pace = Unlimited()


class Copied(Struct):
    """A partition that is copied; it rests until `ready_ms` after a failure."""

    partition: Partition
    ready_ms: int = 0
    rest_ms: int = 0
    """How long it rested last, if the last fetch has failed."""
    asked: Asked | None = None
    """As it was last asked for: the same value as long as nothing has moved."""


class Fetcher:
    """Belongs to the event loop; `run` is a task of its own. Partitions come and go meanwhile."""

    def __init__(self, leader: int, follower: Follower, connect: Connect) -> None:
        self.leader = leader
        self._follower, self._connect = follower, connect
        self._copied: dict[TopicPartition, Copied] = {}
        self._session = FollowerSession()
        self._connection: Connection | None = None
        self._changed = asyncio.Event()
        self._asks = False
        """A fetch is on its way."""
        self._calls_back: asyncio.TimerHandle | None = None

    @property
    def is_used(self) -> bool:
        """Whether it has any partition to copy."""
        return bool(self._copied)

    def add(self, partition: Partition) -> None:
        self._copied[partition.topic_partition] = Copied(partition)
        self._changed.set()
        if self._asks and self._calls_back is None:
            loop = asyncio.get_running_loop()
            self._calls_back = loop.call_later(CALL_BACK_S, self._call_back)

    def remove(self, where: TopicPartition) -> None:
        self._copied.pop(where, None)

    def _call_back(self) -> None:
        """Have the leader answer now: a fetch that waits there gives way to any other request."""
        self._calls_back = None
        connection = self._connection
        if self._asks and connection is not None and connection.is_open:
            connection.interrupt_wait()

    async def run(self) -> None:
        """Copy until cancelled."""
        try:
            while True:
                self._changed.clear()
                wanted, wait_ms = self._ready()
                if wanted:
                    await self._round(wanted, wait_ms)
                else:
                    await self._rest(wait_ms)
        finally:
            self.break_connection()

    def _ready(self) -> tuple[dict[TopicPartition, Asked], int | None]:
        """What to ask for now; else how long until there is something, None: for ever."""
        now_ms = self._follower.clock.monotonic_ms()
        max_bytes = self._follower.config().replica_fetch_max_bytes
        wanted: dict[TopicPartition, Asked] = {}
        soonest: int | None = None
        for where, copied in self._copied.items():
            partition = copied.partition
            if copied.ready_ms <= now_ms:
                copied.ready_ms = now_ms + self._follower.pace.owes_ms(partition, HELD_BACK_MS)
            if copied.ready_ms <= now_ms:
                asked = copied.asked
                if asked is None or not is_next_fetch(asked.fetch, partition, max_bytes):
                    fetch = next_fetch(partition, max_bytes)
                    asked = copied.asked = Asked(partition.topic_id, fetch)
                wanted[where] = asked
            elif soonest is None or copied.ready_ms < soonest:
                soonest = copied.ready_ms
        return wanted, None if soonest is None else soonest - now_ms

    async def _rest(self, wait_ms: int | None) -> None:
        """Until a partition comes, or one is ready again."""
        try:
            async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _round(self, wanted: dict[TopicPartition, Asked], soonest_ms: int | None) -> None:
        """Ask for these; the answer comes before the first of those that rest is ready."""
        config = self._follower.config()
        wait_ms = config.replica_fetch_wait_max_ms
        try:
            connection = self._connection
            if connection is None:
                connection = self._connection = await self._connect()
            self._asks = True
            response = await connection.call(
                self._request(wanted, wait_ms if soonest_ms is None else min(wait_ms, soonest_ms)),
                FetchResponse,
                timeout_ms=config.replica_socket_timeout_ms,
                as_view=True,  # appended before the next fetch is sent, so no copy is needed
            )
            if response.error_code in LOST:
                self._session.lost()
                return
            check(response.error_code, f"Fetch of broker {self.leader}")
        except (KafkaError, ProtocolError) as error:
            logger.warning("broker %d cannot be copied from: %s", self.leader, error)
            self.break_connection()
            await asyncio.sleep(config.replica_fetch_backoff_ms / 1000)
            return
        finally:
            self._asks = False
        self._session.answered(response.session_id)
        lost = self._take_all(wanted, response)
        for where in lost:
            await self._find_range(connection, where)

    def break_connection(self) -> None:
        """Begin anew with the next fetch."""
        self._session.lost()
        if self._connection is not None:
            self._connection.abort()
            self._connection = None

    def _request(self, wanted: dict[TopicPartition, Asked], wait_ms: int) -> FetchRequest:
        follower, config = self._follower, self._follower.config()
        told = self._session.next(wanted)
        return FetchRequest(
            replica_id=follower.broker_id,
            replica_state=ReplicaState(
                replica_id=follower.broker_id, replica_epoch=follower.broker_epoch()
            ),
            max_wait_ms=wait_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=told.session_id,
            session_epoch=told.session_epoch,
            topics=told.topics,
            forgotten_topics_data=told.forgotten,
        )

    def _take_all(
        self, wanted: dict[TopicPartition, Asked], response: FetchResponse
    ) -> list[TopicPartition]:
        """Carry out every answer; those whose end is outside of the leader's log come back."""
        names = {asked.topic_id: where.topic for where, asked in wanted.items()}
        outside = []
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                where = TopicPartition(name, data.partition_index)
                if where in wanted and self._take(where, wanted[where], data) is Next.FIND_RANGE:
                    outside.append(where)
        return outside

    def _take(self, where: TopicPartition, asked: Asked, data: PartitionData) -> Next:
        copied = self._copied.get(where)
        if copied is None or copied.partition.topic_id != asked.topic_id:
            return Next.FETCH  # stopped or made anew meanwhile
        follower = self._follower
        try:
            then = take(copied.partition, asked.fetch, data, follower.logs, follower.clock.now_ms())
        except StorageError as error:
            logger.error("%s is not copied any more: %s", where, error)
            self.remove(where)  # its directory is offline; those in others go on
            return Next.FETCH
        except KafkaError as error:
            logger.error("%s: what broker %d sent is unusable: %s", where, self.leader, error)
            then = Next.LATER
        if data.records:
            follower.pace.passed(copied.partition, len(data.records))
        self._go_on(where, copied, then)
        return then

    def _go_on(self, where: TopicPartition, copied: Copied, then: Next) -> None:
        match then:
            case Next.LATER | Next.FIND_RANGE:
                most_ms = self._follower.config().replica_fetch_backoff_ms
                copied.rest_ms = min(most_ms, 2 * copied.rest_ms or FIRST_REST_MS)
                copied.ready_ms = self._follower.clock.monotonic_ms() + copied.rest_ms
            case Next.AWAIT_LEADER:
                if self._copied.get(where) is copied:
                    self.remove(where)
            case Next.FETCH:
                copied.rest_ms = 0

    async def _find_range(self, connection: Connection, where: TopicPartition) -> None:
        """Ask where the leader's log ends and begins, and move the follower's there."""
        copied = self._copied.get(where)
        if copied is None:
            return
        partition, follower = copied.partition, self._follower
        epoch = partition.leader_epoch
        try:
            end = await self._offset(connection, where, epoch, LATEST)
            start = await self._offset(connection, where, epoch, EARLIEST)
            if self._copied.get(where) is copied and partition.leader_epoch == epoch:
                move_within(partition, start, end, follower.logs, follower.clock.now_ms())
                copied.ready_ms = 0
        except StorageError as error:
            logger.error("%s is not copied any more: %s", where, error)
            self.remove(where)
        except KafkaError as error:
            logger.warning("%s: the range of its leader's log is unknown: %s", where, error)

    async def _offset(
        self, connection: Connection, where: TopicPartition, leader_epoch: int, timestamp: int
    ) -> int:
        asked = ListOffsetsPartition(
            partition_index=where.partition,
            current_leader_epoch=leader_epoch,
            timestamp=timestamp,
        )
        response = await connection.call(
            ListOffsetsRequest(
                replica_id=self._follower.broker_id,
                topics=[ListOffsetsTopic(name=where.topic, partitions=[asked])],
            ),
            ListOffsetsResponse,
            timeout_ms=self._follower.config().replica_socket_timeout_ms,
        )
        answers = [part for topic in response.topics for part in topic.partitions]
        code = answers[0].error_code if answers else ErrorCode.UNKNOWN_SERVER_ERROR
        check(code, f"ListOffsets of {where}")
        return answers[0].offset
