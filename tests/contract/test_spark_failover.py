"""A Spark task continues when the broker that it reads from dies."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.kafka import KafkaCluster
from penstock.client.address import parse_addresses
from penstock.client.listing import IsolationLevel
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.client.settings import ClientSettings
from penstock.spark.decode.columns import RecordBounds
from penstock.spark.decode.vectorised import VectorisedDecoder
from penstock.spark.decode.visible import VisibleBatches
from penstock.spark.source.fetch import FetchedBytes, RangeFetch
from penstock.spark.source.lookup import latest
from penstock.spark.source.ranges import OffsetRange
from penstock.spark.source.settings import FetchSettings
from penstock.types import TopicPartition

pytestmark = pytest.mark.peer
PLACE = TopicPartition("failover", 0)
RECORDS = 3_000


def written(kafka: KafkaCluster) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.create_topics([NewTopic(PLACE.topic, 1, 3)]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "batch.num.messages": 50})
    for n in range(RECORDS):
        producer.produce(PLACE.topic, b"%d" % n * 20)
    assert producer.flush(30) == 0


def offsets_of(fetched: FetchedBytes) -> list[int]:
    decoder = VectorisedDecoder(RecordBounds(first=fetched.start), with_headers=False)
    batches = VisibleBatches(decoder.wanted, fetched.aborted, check_crcs=True, scratch=None)
    found = decoder.decode(fetched.records, batches, plain=True)
    offsets = [offset for each in found for offset in each.offset.to_pylist()]
    fetched.done()
    return offsets


def test_a_read_continues_with_the_next_leader() -> None:
    # Responses of a few batches each, so that many are still to come when the leader dies.
    small = FetchSettings(partition_bytes=5_000, max_wait_ms=50)
    with KafkaCluster(3) as kafka:
        written(kafka)
        bootstrap = tuple(parse_addresses(kafka.bootstrap))
        with BlockingClient(ClientSettings(bootstrap, request_timeout_ms=5_000)) as client:
            leader = client.topic(PLACE.topic).leader(0)
            answers = iter(RangeFetch(client, OffsetRange(PLACE, 0, RECORDS), small, fail=True))
            offsets = offsets_of(next(answers))
            assert len(offsets) < RECORDS // 10
            kafka.kill(leader)
            for fetched in answers:
                offsets += offsets_of(fetched)
            assert offsets == list(range(RECORDS))
            assert client.topic(PLACE.topic).leader(0) != leader
            assert latest(client, [PLACE], IsolationLevel.READ_UNCOMMITTED) == {PLACE: RECORDS}
