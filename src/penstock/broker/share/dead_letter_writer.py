"""Writes the dead letters of share groups to their topics, and retries until it succeeds."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from penstock.broker.cluster import Cluster
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.peers.connection import PeerConnection
from penstock.broker.share.dead_letters import ShareLetter, letter_batch
from penstock.clock import Clock
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.records import NO_LEADER
from penstock.record.record import Record
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

logger = logging.getLogger(__name__)

WRITE_MS = 10_000
RETRY_S = 0.2
NOT_READY_S = 2.0
"""The pause between checks of a topic that is missing or not enabled for dead letters."""
TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
PRODUCE_VERSION = 9
"""Names topics, not ids; refusals name them too."""


class LetterRules(NamedTuple):
    """The settings of a share group that apply to its dead letters."""

    topic: str = ""
    """Empty: the group has no dead letters."""
    copies: bool = False
    """Whether the letter includes the record itself."""


class PostedLetter(NamedTuple):
    """A letter to be written for a share-partition."""

    letter: ShareLetter
    rules: Callable[[], LetterRules]
    read: Callable[[], Awaitable[Record | None]]
    """Reads the record; None if it is gone."""
    is_marker: Callable[[], bool]
    """Whether the offset holds a transaction marker, for which no letter is written."""
    is_needed: Callable[[], bool]
    """False once another broker leads, which then writes the letter."""
    then: Callable[[], object]
    """Called once the letter is written."""


class DeadLetterWriter:
    """Writes the letters of a share-partition in order, one at a time. Belongs to the event loop.

    Uses a connection even if this broker leads the topic, since letters are few. `create_topic`
    creates a topic for dead letters; it may refuse.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        connection_to: Callable[[BrokerId], PeerConnection],
    ) -> None:
        self._cluster, self._clock, self._tasks = cluster, clock, tasks
        self._connection_to = connection_to
        self._connections: dict[BrokerId, PeerConnection] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._is_open = True
        self._warned: set[str] = set()
        self.create_topic: Callable[[str], Awaitable[None]] | None = None

    def post(self, letters: list[PostedLetter]) -> None:
        if not self._is_open or not letters:
            return
        task = self._tasks.create_task(self._write_all(letters))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def close(self) -> None:
        self._is_open = False
        for task in list(self._running):
            task.cancel()
        for connection in self._connections.values():
            connection.drop()

    async def _write_all(self, letters: list[PostedLetter]) -> None:
        for each in letters:
            if await self._written(each):
                each.then()

    async def _written(self, posted: PostedLetter) -> bool:
        """Whether the letter was written; False if it is no longer needed."""
        note = ""
        indexes: dict[str, int] = {}
        while posted.is_needed():
            rules = posted.rules()
            if not rules.topic:
                return True  # the group has no dead letters any more
            why = await self._not_ready(rules.topic)
            if why is not None:
                self._warn_once(f"dead letters of {posted.letter.key.group} wait: {why}")
                await asyncio.sleep(NOT_READY_S)
                continue
            try:
                if posted.is_marker():
                    return True
                index = self._index(posted.letter, rules.topic, indexes)
                code = await self._produce(rules, posted, index, note)
            except TimeoutError:
                code = ErrorCode.REQUEST_TIMED_OUT
            except PARTITION_ERRORS as error:  # includes errors of the disk that has the record
                logger.debug("dead letter of %s: %s", posted.letter.key, error)
                code = code_of(error)
            if code is ErrorCode.NONE:
                return True
            if code in TOO_LARGE and not note:
                note = f"the record is too large for {rules.topic}"
                continue
            self._warn_once(
                f"dead letters of {posted.letter.key.group} to {rules.topic}: {code.name}"
            )
            await asyncio.sleep(RETRY_S)
        return False

    async def _not_ready(self, topic: str) -> str | None:
        """The reason why the topic cannot take dead letters, or None."""
        if topic not in self._cluster.image.topics:
            if not self._cluster.config.share.errors_deadletterqueue_auto_create_topics_enable:
                return f"topic {topic} does not exist"
            if self.create_topic is not None:
                try:
                    await self.create_topic(topic)
                except KafkaError as error:
                    return str(error)
            if topic not in self._cluster.image.topics:
                return f"topic {topic} was created just now"
        if not self._cluster.topic_config(topic).errors_deadletterqueue_group_enable:
            return f"errors.deadletterqueue.group.enable is false for topic {topic}"
        return None

    def _index(self, letter: ShareLetter, topic: str, chosen: dict[str, int]) -> int:
        """The partition for the letter, as Kafka chooses it. All attempts choose the same one, even
        if partitions are added meanwhile: another one's log would not drop the duplicate of an
        attempt whose response was lost.
        """
        partitions = self._cluster.image.topics[topic].partitions
        if chosen.get(topic) not in partitions:  # the first attempt, or the topic is another now
            chosen[topic] = letter.key.partition % len(partitions)
        return chosen[topic]

    async def _produce(
        self, rules: LetterRules, posted: PostedLetter, index: int, note: str
    ) -> ErrorCode:
        letter, image = posted.letter, self._cluster.image
        known = image.partition(TopicPartition(rules.topic, index))
        if known is None or known.leader == NO_LEADER:
            return ErrorCode.LEADER_NOT_AVAILABLE
        copied = await posted.read() if rules.copies and not note else None
        if rules.copies and copied is None and not note:
            note = "the record is gone"
        batch = letter_batch(letter, copied, note, self._clock.now_ms())
        if not note and len(batch) > self._cluster.topic_config(rules.topic).max_message_bytes:
            return ErrorCode.MESSAGE_TOO_LARGE  # the leader might not even read so large a request
        request = ProduceRequest(
            acks=-1,
            timeout_ms=WRITE_MS,
            topic_data=[TopicProduceData(rules.topic, partition_data=[_data(index, batch)])],
        )
        # Includes the wait for earlier calls on the connection.
        async with asyncio.timeout(2 * WRITE_MS / 1000):
            response = await self._connection(known.leader).call(
                request, ProduceResponse, timeout_ms=2 * WRITE_MS, version=PRODUCE_VERSION
            )
        (part,) = [part for topic in response.responses for part in topic.partition_responses]
        return ErrorCode(part.error_code)

    def _connection(self, broker: BrokerId) -> PeerConnection:
        if broker not in self._connections:
            self._connections[broker] = self._connection_to(broker)
        return self._connections[broker]

    def _warn_once(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            logger.warning("%s", message)


def _data(index: int, batch: bytearray) -> PartitionProduceData:
    return PartitionProduceData(index, memoryview(batch))
