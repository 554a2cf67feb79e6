"""The client that prepares what a scenario needs and looks at what it left."""

from collections.abc import Mapping

from clients.librdkafka import LibrdkafkaClient
from clients.protocol import LATEST
from clients.settle import settled


class Referee(LibrdkafkaClient):
    """Its topics are there for every client when it has made them."""

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        super().create_topic(topic, partitions, configs)
        assert settled(lambda: len(self.partitions(topic)), partitions) == partitions
        for index in range(partitions):  # the leader may learn last that it leads
            assert settled(lambda at=index: self.offset(topic, at, LATEST), 0) == 0  # type: ignore[misc]
