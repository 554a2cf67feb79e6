"""The internal topics of a broker, with default settings."""

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from peers.process import wait_until
from penstock.testing.broker import EmbeddedBroker

QUIET = {"log_level": 0}
WAIT_S = 20


@pytest.mark.row("A038", "A092")
def test_committed_offsets_are_in_fifty_compacted_partitions() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("t", 1)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", **QUIET})
        consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
        consumer.close()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
        listed = admin.list_topics("__consumer_offsets", WAIT_S).topics["__consumer_offsets"]
        assert len(listed.partitions) == 50
        asked = ConfigResource(ResourceType.TOPIC, "__consumer_offsets")
        (described,) = admin.describe_configs([asked]).values()
        assert described.result(WAIT_S)["cleanup.policy"].value == "compact"
        partitions = broker.running.services.replicas.partitions

        def ends() -> list[int]:
            found = [partitions.find("__consumer_offsets", index) for index in range(50)]
            return [each.log.end_offset for each in found if each is not None]

        wait_until(lambda: len(ends()) == 50, WAIT_S, "all of its logs")
        assert [index for index, end in enumerate(ends()) if end] == [3], (
            "Java's hash of g, modulo 50"
        )
