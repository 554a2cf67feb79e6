"""What a broker stores of a produced batch, and what it refuses, over a socket."""

from collections.abc import Iterator

import pytest

from penstock.clock import SystemClock
from penstock.errors import ErrorCode
from penstock.record.batch import batches, crc_matches
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.record import Record, records
from penstock.record.stamp import stamp_log_append_time, stamp_max_timestamp
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.brokers.wire_link import WireLink
from support.records.produced_batches import MALFORMED, of_bytes

NOW_MS = SystemClock().now_ms()
TIMES = [NOW_MS - 7, NOW_MS - 90, NOW_MS - 5]
WRITTEN = [Record(i, at, b"k", b"v" * 100, []) for i, at in enumerate(TIMES)]


@pytest.fixture(scope="module")
def link() -> Iterator[WireLink]:
    with EmbeddedBroker() as broker, WireLink(broker.bootstrap) as link:
        yield link


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
@pytest.mark.parametrize("acks", [-1, 1])
def test_clients_can_neither_write_to_an_internal_topic_nor_delete_from_it(
    link: WireLink, name: str, acks: int
) -> None:
    key_type = int(name == "__transaction_state")
    find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"])
    found = link.ask(find)
    assert isinstance(found, FindCoordinatorResponse)
    assert found.coordinators[0].error_code == 0
    batch = build_batch([Record(0, NOW_MS, b"k", b"hello", [])])
    part = PartitionProduceData(index=0, records=bytes(batch))
    data = [TopicProduceData(name=name, partition_data=[part])]
    request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=data)
    for client_id in ("test", "__admin_client"):
        link.client_id = client_id
        answer = link.ask(request, 9)
        assert isinstance(answer, ProduceResponse)
        reported = answer.responses[0].partition_responses[0]
        assert reported.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    delete = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)]
            )
        ]
    )
    deleted = link.ask(delete)
    assert isinstance(deleted, DeleteRecordsResponse)
    assert deleted.topics[0].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def topic(link: WireLink, name: str, **configs: str) -> str:
    settings = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    new = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=settings)
    link.ask(CreateTopicsRequest(topics=[new]), 7)
    return name


def produce(link: WireLink, name: str, batch: bytearray) -> ErrorCode:
    part = PartitionProduceData(index=0, records=memoryview(batch))
    response = link.ask(
        ProduceRequest(
            acks=-1,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=name, partition_data=[part])],
        ),
        9,
    )
    assert isinstance(response, ProduceResponse)
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def stored(link: WireLink, name: str) -> bytes:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=name, partitions=[part])],
    )
    response = link.ask(request, 12)
    assert isinstance(response, FetchResponse)
    data = response.responses[0].partitions[0].records
    assert isinstance(data, bytes)
    return data


@pytest.mark.parametrize("wrong", MALFORMED)
def test_malformed_records_are_refused(link: WireLink, wrong: str) -> None:
    name = topic(link, f"malformed-{list(MALFORMED).index(wrong)}")
    batch = of_bytes(bytes.fromhex(MALFORMED[wrong]))
    assert produce(link, name, batch) == ErrorCode.INVALID_RECORD
    assert len(stored(link, name)) == 0


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_data_that_does_not_decompress_is_refused(link: WireLink, codec: Codec) -> None:
    name = topic(link, f"no-{codec.name}")
    assert produce(link, name, of_bytes(b"no such data", codec)) == ErrorCode.INVALID_RECORD
    assert len(stored(link, name)) == 0


@pytest.mark.row("A003")
@pytest.mark.parametrize("codec", Codec)
def test_a_valid_batch_is_stored_unchanged(link: WireLink, codec: Codec) -> None:
    name = topic(link, f"good-{codec.name}")
    batch = build_batch(WRITTEN, codec=codec, leader_epoch=0)
    assert produce(link, name, batch) == ErrorCode.NONE
    assert stored(link, name) == batch


@pytest.mark.parametrize("codec", Codec)
def test_a_wrong_max_timestamp_is_corrected(link: WireLink, codec: Codec) -> None:
    name = topic(link, f"corrected-{codec.name}")
    honest = build_batch(WRITTEN, codec=codec, leader_epoch=0)
    for claimed in (-1, NOW_MS - 6, NOW_MS + 86_400_000):
        lying = bytearray(honest)
        stamp_max_timestamp(lying, claimed)
        assert produce(link, name, lying) == ErrorCode.NONE
    data = stored(link, name)
    found = list(batches(data))
    assert [header.max_timestamp for _, header in found] == [NOW_MS - 5] * 3
    assert all(crc_matches(data, header, at) for at, header in found)


def test_a_clients_log_append_time_flag_is_cleared_or_refused(link: WireLink) -> None:
    claiming = build_batch(WRITTEN, leader_epoch=0)
    stamp_log_append_time(claiming, NOW_MS)
    name = topic(link, "claimed")
    assert produce(link, name, claiming) == ErrorCode.NONE
    [(_, header)] = batches(stored(link, name))
    assert (header.is_log_append_time, header.max_timestamp) == (False, NOW_MS)
    name = topic(link, "stamped", message_timestamp_type="LogAppendTime")
    assert produce(link, name, claiming) == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.row("A028")
def test_recompressing_with_the_topics_codec_keeps_records_and_max_timestamp(
    link: WireLink,
) -> None:
    name = topic(link, "zstd", compression_type="zstd")
    lying = build_batch(WRITTEN, codec=Codec.LZ4)
    stamp_max_timestamp(lying, NOW_MS + 86_400_000)
    assert produce(link, name, lying) == ErrorCode.NONE
    data = stored(link, name)
    [(_, header)] = batches(data)
    assert (header.codec, header.max_timestamp) == (Codec.ZSTD, NOW_MS - 5)
    assert list(records(data, header, 1 << 20)) == WRITTEN


def test_a_batch_too_large_in_the_topics_codec_is_refused(link: WireLink) -> None:
    name = topic(link, "plain", compression_type="uncompressed")
    large = [Record(i, NOW_MS, b"k", bytes(900_000), []) for i in range(3)]
    assert produce(link, name, build_batch(large, codec=Codec.ZSTD)) == ErrorCode.MESSAGE_TOO_LARGE
    assert len(stored(link, name)) == 0


def test_a_refusal_names_the_bad_records(link: WireLink) -> None:
    name = topic(link, "named", cleanup_policy="compact")
    batch = build_batch([Record(i, NOW_MS, key, b"v", []) for i, key in enumerate((b"k", None))])
    part = PartitionProduceData(index=0, records=memoryview(batch))
    request = ProduceRequest(
        acks=1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=name, partition_data=[part])],
    )
    response = link.ask(request, 9)
    assert isinstance(response, ProduceResponse)
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.INVALID_RECORD
    (at_fault,) = answer.record_errors
    assert at_fault.batch_index == 1
    assert "without key in topic partition named-0" in (at_fault.batch_index_error_message or "")
    assert "rejected due to 1 record errors in total" in (answer.error_message or "")


def test_a_response_names_the_bad_records_of_only_a_few_batches(link: WireLink) -> None:
    """A hundred bytes hold thousands of records, and a request may have 20,000 such batches."""
    name = topic(link, "named-once", cleanup_policy="compact")
    count = 4_000
    batch = build_batch([Record(i, NOW_MS, None, b"", []) for i in range(count)], codec=Codec.ZSTD)
    parts = [PartitionProduceData(index=0, records=memoryview(batch)) for _ in range(20)]
    request = ProduceRequest(
        acks=1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=name, partition_data=parts)],
    )
    response = link.ask(request, 9)
    assert isinstance(response, ProduceResponse)
    answers = response.responses[0].partition_responses
    assert {each.error_code for each in answers} == {ErrorCode.INVALID_RECORD}
    named = [len(each.record_errors) for each in answers]
    assert named == [count] * 3 + [0] * 17
