"""The client that prepares each scenario and checks its outcome."""

import asyncio
from collections.abc import Iterable, Mapping

from clients.librdkafka import LibrdkafkaClient
from clients.protocol import LATEST
from clients.settle import settled
from penstock.client.address import Address
from penstock.client.connection import connect
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse


class Referee(LibrdkafkaClient):
    """Creates topics and partitions so that every client finds them at once, and deletes topics so
    that none does.
    """

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        super().create_topic(topic, partitions, configs)
        assert settled(lambda: len(self.partitions(topic)), partitions) == partitions
        asyncio.run(_known_everywhere(self.addresses(), topic, partitions))
        for index in range(partitions):  # the leader may be the last to learn that it leads
            assert settled(lambda at=index: self.offset(topic, at, LATEST), 0) == 0  # type: ignore[misc]

    def create_partitions(self, topic: str, count: int) -> None:
        super().create_partitions(topic, count)
        assert settled(lambda: len(self.partitions(topic)), count) == count
        asyncio.run(_known_everywhere(self.addresses(), topic, count))

    def delete_topic(self, topic: str) -> None:
        super().delete_topic(topic)
        asyncio.run(_known_everywhere(self.addresses(), topic, 0))


async def _known_everywhere(brokers: Iterable[Address], topic: str, partitions: int) -> None:
    """Waits until each broker knows so many partitions: a client may ask any broker."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )
    for address in brokers:
        connection = await connect(address, client_id="referee")
        async with asyncio.timeout(10):
            found = 0
            while found != partitions:
                answer = await connection.call(request, MetadataResponse, timeout_ms=10_000)
                found = len(answer.topics[0].partitions)
        await connection.close()
