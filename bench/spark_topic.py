"""Topics for Spark to read: many equal batches, of a default producer's size."""

from itertools import cycle, islice
from typing import NamedTuple

from penstock.client.route import ToLeader
from penstock.record.build import build_batch
from penstock.record.record import Record
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.client.settings import ClientSettings
from penstock.spark.pipeline.settings import DEFAULTS
from penstock.types import TopicPartition
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

SESSION = {"spark.driver.memory": "3g", **DEFAULTS}
"""Settings of a Spark session, including those of our pipelines."""
BATCH_BYTES = 16 << 10
"""The default `batch.size` of a producer."""
IN_FLIGHT = 32


class Topic(NamedTuple):
    """`rows` records whose key and value have `record_bytes` together."""

    name: str
    record_bytes: int
    rows: int
    partitions: int = 4


def batch_of(record_bytes: int) -> tuple[bytes, int]:
    """One batch, and its number of records."""
    count = max(BATCH_BYTES // (record_bytes + 10), 1)
    records = [
        Record(n, 1_700_000_000_000 + n, b"key-%04d" % n, b"v" * (record_bytes - 8), [])
        for n in range(count)
    ]
    return bytes(build_batch(records)), count


def fill(settings: ClientSettings, topic: Topic) -> int:
    """Creates and fills the topic; returns its number of rows."""
    batch, count = batch_of(topic.record_bytes)
    with BlockingClient(settings) as client:
        new = CreatableTopic(name=topic.name, num_partitions=topic.partitions, replication_factor=1)
        client.call(CreateTopicsRequest(topics=[new], timeout_ms=10_000), CreateTopicsResponse)
        known = client.retrying(lambda: client.topic(topic.name))
        connection = client.connection(ToLeader(TopicPartition(topic.name, 0)))
        requests = [
            ProduceRequest(
                acks=1,
                timeout_ms=10_000,
                topic_data=[
                    TopicProduceData(
                        name=topic.name,
                        topic_id=known.id,
                        partition_data=[PartitionProduceData(index=index, records=batch)],
                    )
                ],
            )
            for index in range(topic.partitions)
        ]
        batches = topic.rows // count
        sent = []
        for request in islice(cycle(requests), batches):
            sent.append(connection.send(request, ProduceResponse))
            if len(sent) > IN_FLIGHT:
                connection.receive(sent.pop(0))
        for each in sent:
            connection.receive(each)
    return batches * count
