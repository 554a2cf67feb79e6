"""Requests of a share consumer if responses are lost or a partition has no leader."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused, RequestTimedOut
from penstock.client.metadata import NO_LEADER, PartitionMetadata, TopicMetadata
from penstock.client.share_consumer import ShareConsumer
from penstock.errors import ErrorCode, KafkaError
from penstock.types import BrokerId, LeaderEpoch, TopicPartition, Uuid
from penstock.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

TOPIC = Uuid(b"t" * 16)


class LossyClient:
    """A client and its one connection, on which some responses are lost."""

    request_timeout_ms = 1000

    def __init__(self, *is_lost: bool) -> None:
        self._is_lost = list(is_lost)
        self.named: list[list[str] | None] = []

    async def connection(self, _: object) -> "LossyClient":
        return self

    async def call(self, request: ShareGroupHeartbeatRequest, *_: object, **__: object) -> Any:
        self.named.append(request.subscribed_topic_names)
        if self._is_lost.pop(0):
            raise RequestTimedOut("no response")
        return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=1)

    async def topic(self, name: str) -> TopicMetadata:
        if name != "t":
            raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        leaders = enumerate((1, NO_LEADER, 2, 1))
        return TopicMetadata(
            name,
            TOPIC,
            is_internal=False,
            partitions={
                index: PartitionMetadata(index, BrokerId(leader), LeaderEpoch(0), (), (), ())
                for index, leader in leaders
            },
        )

    async def retrying(self, attempt: Callable[[], Awaitable[Any]], retry_on: object) -> Any:
        assert retry_on
        while True:
            try:
                return await attempt()
            except KafkaError:
                if not self._is_lost:
                    raise


def test_after_a_lost_response_the_next_heartbeat_is_a_full_one() -> None:
    """The lost response may have had an assignment, which the coordinator sends only once."""

    async def work() -> None:
        client = LossyClient(False, False, True, False, False)
        consumer = ShareConsumer(cast("Client", client), "g", ["t"])
        for _ in range(4):
            consumer._heartbeat_at = 0.0
            await consumer._heartbeat_when_due()
        assert client.named == [["t"], None, None, ["t"], None]

    asyncio.run(work())


def test_a_partition_without_a_leader_does_not_delay_others() -> None:
    async def work() -> None:
        consumer = ShareConsumer(cast("Client", LossyClient()), "g", ["t", "gone"])
        consumer._assigned = [
            TopicPartition("gone", 0),
            *(TopicPartition("t", index) for index in range(4)),
        ]
        leaders, failed = await consumer._led()
        assert leaders == {
            1: [TopicPartition("t", 0), TopicPartition("t", 3)],
            2: [TopicPartition("t", 2)],
        }
        assert failed is not None

    asyncio.run(work())
