"""The topics in which a broker keeps its own state, as they are when nothing is set."""

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from penstock.testing.broker import EmbeddedBroker

QUIET = {"log_level": 0}
WAIT_S = 20


@pytest.mark.row("A038", "A092")
def test_committed_offsets_lie_in_fifty_compacted_partitions() -> None:
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
        ends = {
            index: broker.running.services.replicas.partitions.get(
                "__consumer_offsets", index
            ).log.end_offset
            for index in range(50)
        }
        assert [index for index, end in ends.items() if end] == [3], "Java's hash of g, modulo 50"
