"""Ends of partitions that other brokers lead, requested every few seconds for consumer lag."""

import asyncio
from collections.abc import Callable, Collection

import msgspec

from penstock.broker.peers.end_history import EndHistory
from penstock.broker.peers.outbox import Link, Outbox
from penstock.clock import Clock
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
"""Requested as a consumer: the response has the high watermark."""


class LogEndRequest(msgspec.Struct, frozen=True):
    """A request for the ends of partitions with the same leader."""

    topic_partitions: tuple[TopicPartition, ...]
    on_end: Callable[[TopicPartition, int], object]

    def failed(self, code: ErrorCode) -> None:
        """Keep the last known ends; the next request follows soon."""


class LogEnds:
    """`wanted` returns the partitions of interest, by leader. Belongs to the event loop."""

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        connection_to: Callable[[BrokerId], Link],
        wanted: Callable[[], dict[BrokerId, set[TopicPartition]]],
        clock: Clock,
    ) -> None:
        self._wanted, self._clock = wanted, clock
        self._outbox: Outbox[LogEndRequest, ListOffsetsResponse] = Outbox(
            tasks, connection_to, ends_request, ListOffsetsResponse, answer_all, TIMEOUT_MS
        )
        self._ends: dict[TopicPartition, EndHistory] = {}

    def get(self, topic_partition: TopicPartition) -> EndHistory | None:
        return self._ends.get(topic_partition)

    async def run(self) -> None:
        try:
            while True:
                self.ask()
                await asyncio.sleep(EVERY_S)
        finally:
            self._outbox.close()

    def ask(self) -> None:
        wanted = self._wanted()
        self._outbox.keep_only(wanted)
        every = set().union(*wanted.values()) if wanted else set()
        self._ends = {
            topic_partition: ends
            for topic_partition, ends in self._ends.items()
            if topic_partition in every
        }
        for leader, topic_partitions in wanted.items():
            self._outbox.post(leader, LogEndRequest(tuple(sorted(topic_partitions)), self._on_end))

    def _on_end(self, topic_partition: TopicPartition, end: int) -> None:
        known, now_ms = self._ends.get(topic_partition), self._clock.now_ms()
        if known is None:
            self._ends[topic_partition] = EndHistory(end, now_ms)
        else:
            known.observe(end, now_ms)


def ends_request(requests: list[LogEndRequest]) -> ListOffsetsRequest:
    topics: dict[str, set[int]] = {}
    for request in requests:
        for topic, partition in request.topic_partitions:
            topics.setdefault(topic, set()).add(partition)
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        topics=[_topic(name, partitions) for name, partitions in topics.items()],
    )


def _topic(name: str, partitions: Collection[int]) -> ListOffsetsTopic:
    return ListOffsetsTopic(
        name=name,
        partitions=[
            ListOffsetsPartition(partition_index=each, timestamp=LATEST)
            for each in sorted(partitions)
        ],
    )


def answer_all(requests: list[LogEndRequest], response: ListOffsetsResponse) -> None:
    for topic in response.topics:
        for each in topic.partitions:
            topic_partition = TopicPartition(topic.name, each.partition_index)
            for request in requests:
                if (
                    each.error_code == ErrorCode.NONE
                    and topic_partition in request.topic_partitions
                ):
                    request.on_end(topic_partition, each.offset)
