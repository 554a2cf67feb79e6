"""How far partitions go that other brokers lead: asked every few seconds, for groups' lag."""

import asyncio
from collections.abc import Callable, Collection

import msgspec

from penstock.broker.peers.outbox import Link, Outbox
from penstock.errors import ErrorCode
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

EVERY_S = 5.0
TIMEOUT_MS = 5_000
LATEST = -1
CONSUMER = -1
"""Ends are asked as consumers ask: up to the high watermark."""


class EndsQuestion(msgspec.Struct, frozen=True):
    """To one leader; whoever does not answer is asked again in a while."""

    places: tuple[TopicPartition, ...]
    answered: Callable[[TopicPartition, int], object]

    def failed(self, code: ErrorCode) -> None:
        """What was known last stays so until then."""


class LogEnds:
    """Belongs to the event loop. `wanted` tells which are asked for, by their leaders."""

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        connection_to: Callable[[BrokerId], Link],
        wanted: Callable[[], dict[BrokerId, set[TopicPartition]]],
    ) -> None:
        self._wanted = wanted
        self._posts: Outbox[EndsQuestion, ListOffsetsResponse] = Outbox(
            tasks, connection_to, ends_request, ListOffsetsResponse, tell, TIMEOUT_MS
        )
        self._ends: dict[TopicPartition, int] = {}

    def get(self, topic_partition: TopicPartition) -> int | None:
        return self._ends.get(topic_partition)

    async def run(self) -> None:
        try:
            while True:
                self.ask()
                await asyncio.sleep(EVERY_S)
        finally:
            self._posts.close()

    def ask(self) -> None:
        wanted = self._wanted()
        self._posts.only(wanted)
        every = set().union(*wanted.values()) if wanted else set()
        self._ends = {
            topic_partition: end
            for topic_partition, end in self._ends.items()
            if topic_partition in every
        }
        for leader, places in wanted.items():
            self._posts.post(leader, EndsQuestion(tuple(sorted(places)), self._heard))

    def _heard(self, topic_partition: TopicPartition, end: int) -> None:
        self._ends[topic_partition] = end


def ends_request(questions: list[EndsQuestion]) -> ListOffsetsRequest:
    topics: dict[str, set[int]] = {}
    for question in questions:
        for topic, partition in question.places:
            topics.setdefault(topic, set()).add(partition)
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        topics=[_asked(name, partitions) for name, partitions in topics.items()],
    )


def _asked(name: str, partitions: Collection[int]) -> ListOffsetsTopic:
    return ListOffsetsTopic(
        name=name,
        partitions=[
            ListOffsetsPartition(partition_index=each, timestamp=LATEST)
            for each in sorted(partitions)
        ],
    )


def tell(questions: list[EndsQuestion], response: ListOffsetsResponse) -> None:
    for topic in response.topics:
        for each in topic.partitions:
            topic_partition = TopicPartition(topic.name, each.partition_index)
            for question in questions:
                if each.error_code == ErrorCode.NONE and topic_partition in question.places:
                    question.answered(topic_partition, each.offset)
