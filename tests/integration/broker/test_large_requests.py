"""Requests that name very many partitions or topics: answered in turns, and as small ones are."""

from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.broker.context import Context, Peer
from penstock.broker.handlers.fetch import MANY_PARTITIONS, fetch
from penstock.broker.handlers.metadata import MANY_TOPICS, metadata
from penstock.broker.net.dispatch import LARGE_BYTES
from penstock.errors import ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.apis import api_of
from penstock.wire.client_frame import request_frame
from penstock.wire.header import RequestHeader
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.wire.schema import Message
from support.brokers.wire_link import WireLink
from support.records.produced_batches import produced

COUNT = 20_000
PRODUCE, FETCH, METADATA = 9, 12, 9
ONE_RECORD = ProduceRequest(
    acks=1,
    timeout_ms=1000,
    topic_data=[
        TopicProduceData(name="t", partition_data=[PartitionProduceData(records=produced())])
    ],
)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        running.create_topic("t")
        yield running


def partitions(count: int, *, epoch: int = -1) -> FetchRequest:
    """The first one of `t` exists."""
    wanted = [FetchPartition(partition=i, partition_max_bytes=1 << 20) for i in range(count)]
    return FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1 << 20,
        max_bytes=1 << 20,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=wanted)],
    )


def names(count: int) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=f"missing-{i}") for i in range(count)]
    return MetadataRequest(
        topics=[*topics, MetadataRequestTopic(name="t")], allow_auto_topic_creation=False
    )


def test_very_many_partitions_are_fetched(broker: EmbeddedBroker) -> None:
    request = partitions(COUNT)
    assert len(request_frame(api_of(FetchRequest), FETCH, 1, "", request)) > LARGE_BYTES
    with WireLink(broker.bootstrap) as client:
        for records in (b"", b"v1"):
            response = client.ask(request, FETCH)
            assert isinstance(response, FetchResponse)
            (topic,) = response.responses
            first, *others = topic.partitions
            found = first.records
            assert isinstance(found, bytes | memoryview)
            assert records in bytes(found)
            assert first.error_code == ErrorCode.NONE
            assert len(others) == COUNT - 1
            assert {e.error_code for e in others} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            client.ask(ONE_RECORD, PRODUCE)


def test_very_many_topics_are_described(broker: EmbeddedBroker) -> None:
    request = names(COUNT)
    assert len(request_frame(api_of(MetadataRequest), METADATA, 1, "", request)) > LARGE_BYTES
    with WireLink(broker.bootstrap) as client:
        response = client.ask(request, METADATA)
    assert isinstance(response, MetadataResponse)
    codes = [each.error_code for each in response.topics]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * COUNT + [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("handler", "request_", "version", "turns"),
    [
        (fetch, partitions(MANY_PARTITIONS + 1), FETCH, 30),
        (fetch, partitions(MANY_PARTITIONS + 1, epoch=0), FETCH, 30),
        (metadata, names(MANY_TOPICS), METADATA, 4),
    ],
)
def test_other_requests_get_turns_in_between(
    broker: EmbeddedBroker, handler: Any, request_: Message, version: int, turns: int
) -> None:
    header = RequestHeader(api_of(type(request_)), version, 1, "")
    peer = Peer("PLAINTEXT", "127.0.0.1", 1)
    work = handler(request_, Context(header, version, peer, 0, broker.running.services))
    assert isinstance(work, Coroutine)
    for _ in range(turns):
        work.send(None)
    work.close()


def test_a_session_that_would_have_too_many_partitions_ends(broker: EmbeddedBroker) -> None:
    with WireLink(broker.bootstrap) as client:
        began = client.ask(replace(partitions(1, epoch=0), max_wait_ms=0), FETCH)
        assert isinstance(began, FetchResponse)
        more = replace(partitions(COUNT, epoch=1), session_id=began.session_id)
        ended = client.ask(more, FETCH)
        assert isinstance(ended, FetchResponse)
        assert ended.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
