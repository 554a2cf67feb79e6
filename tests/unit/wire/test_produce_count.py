"""Produce requests with absurdly many partitions are detected before they are decoded."""

import pytest

from penstock.types import Uuid
from penstock.wire.apis import api_of
from penstock.wire.codec import encode
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.wire.produce_count import MOST_PARTITIONS, SMALLEST_BYTES, names_too_many

VERSIONS = range(api_of(ProduceRequest).low, api_of(ProduceRequest).high + 1)


def request(topics: int, partitions: int) -> ProduceRequest:
    """A request in which every second partition has no records."""
    parts = [PartitionProduceData(i, b"x" * 200 if i % 2 else None) for i in range(partitions)]
    topic = TopicProduceData(name="t", topic_id=Uuid(b"i" * 16), partition_data=parts)
    return ProduceRequest(transactional_id="id", acks=-1, topic_data=[topic] * topics)


@pytest.mark.parametrize("version", VERSIONS)
def test_topics_and_partitions_are_counted(version: int) -> None:
    for few in (request(1, MOST_PARTITIONS - 1), request(10, 1900), request(0, 0)):
        assert not names_too_many(encode(few, version), 0, version)
    for many in (request(1, MOST_PARTITIONS), request(10, 2000), request(MOST_PARTITIONS + 1, 0)):
        assert names_too_many(encode(many, version), 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_malformed_request_is_left_to_its_decoder(version: int) -> None:
    whole = encode(request(3, 5), version)
    for size in range(len(whole)):
        assert not names_too_many(whole[:size], 0, version)


def test_a_smaller_request_cannot_name_so_many() -> None:
    parts = [PartitionProduceData(i, None) for i in range(MOST_PARTITIONS + 1)]
    most = ProduceRequest(topic_data=[TopicProduceData(name="", partition_data=parts)])
    for version in VERSIONS:
        assert len(encode(most, version)) > SMALLEST_BYTES
