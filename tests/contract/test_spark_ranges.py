"""What a Spark task reads, without Spark: ranges of topics that librdkafka has written."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from clients.brokers import Target
from clients.protocol import CODECS, Codec, Record
from clients.referee import Referee
from penstock.client.address import parse_addresses
from penstock.client.errors import BrokerRefused
from penstock.client.listing import IsolationLevel
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.client.settings import ClientSettings
from penstock.spark.options import Options
from penstock.spark.source.batch_reader import batch_reader
from penstock.spark.source.bounds import FROM_EARLIEST, GivenOffsets, GivenTimes
from penstock.spark.source.data_loss import DataLoss
from penstock.spark.source.fetch import ReadTimedOut
from penstock.spark.source.lookup import commit, earliest, latest, list_offsets, resolve
from penstock.spark.source.ranges import OffsetRange
from penstock.spark.source.read import read_range
from penstock.spark.source.settings import SourceSettings, batch_settings
from penstock.types import Offset, TopicPartition


def settings(target: Target, **changed: Any) -> SourceSettings:
    options = {"kafka.bootstrap.servers": target.bootstrap, "subscribe": "any"}
    read, _ = batch_settings(Options(options | {"includeHeaders": "true"}))
    return replace(read, **changed)


def rows(found: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in found for row in batch.to_pylist()]


@pytest.fixture
def client(target: Target) -> Iterator[BlockingClient]:
    with BlockingClient(ClientSettings(tuple(parse_addresses(target.bootstrap)))) as found:
        yield found


def written(count: int, size: int = 10) -> list[Record]:
    return [
        Record(b"v%d" % n * size, b"k%d" % n, (("h", b"%d" % n),) if n % 2 else (), 1_000 + n, 0)
        for n in range(count)
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_a_range_holds_what_was_written(
    target: Target, referee: Referee, topic: str, codec: Codec
) -> None:
    referee.create_topic(topic)
    records = written(300)
    referee.produce(topic, records, codec=codec)
    found = rows(read_range(OffsetRange(TopicPartition(topic, 0), 7, 290), settings(target)))
    assert [(row["offset"], row["key"], row["value"]) for row in found] == [
        (offset, record.key, record.value) for offset, record in enumerate(records)
    ][7:290]
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in found} == {
        (topic, 0, 0)
    }
    assert [int(row["timestamp"].timestamp() * 1000 + 0.5) for row in found] == [
        record.timestamp_ms for record in records
    ][7:290]
    assert [row["headers"] for row in found] == [
        [{"key": name, "value": value} for name, value in record.headers] or None
        for record in records
    ][7:290]


def test_small_responses_give_the_same_records_as_large_ones(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic)
    records = written(500, 100)
    for chunk in range(0, 500, 20):
        referee.produce(topic, records[chunk : chunk + 20])
    topic_partition = TopicPartition(topic, 0)
    fetch = replace(settings(target).fetch, partition_bytes=3_000)
    small = rows(read_range(OffsetRange(topic_partition, 0, 500), settings(target, fetch=fetch)))
    assert small == rows(read_range(OffsetRange(topic_partition, 0, 500), settings(target)))
    assert len(small) == 500


def test_log_append_time_has_its_timestamp_type(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    referee.produce(topic, written(3))
    found = rows(read_range(OffsetRange(TopicPartition(topic, 0), 0, 3), settings(target)))
    assert {row["timestampType"] for row in found} == {1}
    assert all(row["timestamp"].year > 2000 for row in found)


def test_timestamps_narrow_a_range(target: Target, referee: Referee, topic: str) -> None:
    referee.create_topic(topic)
    referee.produce(topic, written(50))
    wanted = OffsetRange(TopicPartition(topic, 0), 0, 50)
    found = rows(read_range(wanted, settings(target), oldest_ms=1_010, newest_ms=1_012))
    assert [row["offset"] for row in found] == [10, 11, 12]


def test_a_committed_read_sees_no_aborted_record(
    target: Target, referee: Referee, topic: str, client: BlockingClient
) -> None:
    referee.create_topic(topic)
    producer = Producer(
        {
            "bootstrap.servers": target.bootstrap,
            "transactional.id": f"spark-{uuid4().hex[:8]}",
            "linger.ms": 0,
        }
    )
    producer.init_transactions(30)
    for word in ("kept", "undone", "kept"):
        producer.begin_transaction()
        for n in range(5):
            producer.produce(topic, f"{word}-{n}".encode(), partition=0)
        producer.flush(30)
        (producer.commit_transaction if word == "kept" else producer.abort_transaction)(30)
    topic_partition = TopicPartition(topic, 0)
    isolation = IsolationLevel.READ_COMMITTED
    end = latest(client, [topic_partition], isolation)[topic_partition]
    assert end == 18  # includes three markers
    found = {}
    for level in IsolationLevel:
        fetch = replace(settings(target).fetch, isolation=level)
        wanted = OffsetRange(topic_partition, 0, end)
        found[level] = [
            row["value"].decode() for row in rows(read_range(wanted, settings(target, fetch=fetch)))
        ]
    kept, undone = ([f"{word}-{n}" for n in range(5)] for word in ("kept", "undone"))
    assert found[IsolationLevel.READ_COMMITTED] == kept + kept
    assert found[IsolationLevel.READ_UNCOMMITTED] == kept + undone + kept


def test_deleted_records_fail_a_read_or_are_skipped(
    target: Target, referee: Referee, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    referee.create_topic(topic)
    referee.produce(topic, written(50))
    referee.delete_records(topic, 0, 20)
    topic_partition = TopicPartition(topic, 0)
    with pytest.raises(DataLoss, match=r"\[5, 50\): offsets 5 to 19 are gone.*failOnDataLoss"):
        rows(read_range(OffsetRange(topic_partition, 5, 50), settings(target)))
    lenient = settings(target, fail_on_data_loss=False)
    found = rows(read_range(OffsetRange(topic_partition, 5, 50), lenient))
    assert [row["offset"] for row in found] == list(range(20, 50))
    assert rows(read_range(OffsetRange(topic_partition, 5, 15), lenient)) == []
    assert "offsets 5 to 19 are gone" in caplog.text


def test_a_range_past_the_logs_end_is_data_loss(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic)
    referee.produce(topic, written(5))
    with pytest.raises(DataLoss, match="offset 7 is past the log's end 5"):
        rows(read_range(OffsetRange(TopicPartition(topic, 0), 7, 9), settings(target)))


def test_a_read_does_not_wait_forever_for_records(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic)
    referee.produce(topic, written(5))
    hasty = replace(settings(target).client, timeout_ms=300)
    fetch = replace(settings(target).fetch, max_wait_ms=10)
    wanted = OffsetRange(TopicPartition(topic, 0), 0, 9)
    with pytest.raises(ReadTimedOut, match=r"no record from offset 5 within .*300 ms"):
        rows(read_range(wanted, settings(target, client=hasty, fetch=fetch)))


def test_a_missing_topic_is_an_error(target: Target) -> None:
    wanted = OffsetRange(TopicPartition("no-such-topic", 0), 0, 9)
    with pytest.raises(BrokerRefused, match="no-such-topic"):
        rows(read_range(wanted, settings(target)))


def test_stopping_early_leaves_no_thread_behind(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic)
    for _ in range(20):
        referee.produce(topic, written(10, 1000))
    fetch = replace(settings(target).fetch, partition_bytes=1_000)
    found = read_range(OffsetRange(TopicPartition(topic, 0), 0, 200), settings(target, fetch=fetch))
    next(found)
    found.close()  # type: ignore[attr-defined]  # a generator, which a pytest warning would tell


def test_offsets_are_found_by_timestamp_earliest_and_latest(
    referee: Referee, topic: str, client: BlockingClient
) -> None:
    referee.create_topic(topic, 2)
    referee.produce(topic, written(10))
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    everything = [zero, one]
    level = IsolationLevel.READ_UNCOMMITTED
    assert earliest(client, everything) == {zero: 0, one: 0}
    assert latest(client, everything, level) == {zero: 10, one: 0}
    assert list_offsets(client, {zero: 1_004}, level) == {zero: 4}
    assert resolve(client, FROM_EARLIEST, everything, level).offsets == {zero: 0, one: 0}
    given = GivenOffsets("startingOffsets", {zero: 3, one: -1})
    assert resolve(client, given, everything, level).offsets == {zero: 3, one: 0}
    times = GivenTimes("endingTimestamp", 1_004, {}, latest_if_none=True)
    assert resolve(client, times, everything, level).offsets == {zero: 4, one: 0}


def test_progress_is_committed_to_a_group(
    target: Target, referee: Referee, topic: str, client: BlockingClient
) -> None:
    from confluent_kafka import Consumer
    from confluent_kafka import TopicPartition as Position

    referee.create_topic(topic)
    referee.produce(topic, written(10))
    topic_partition = TopicPartition(topic, 0)
    commit(
        client,
        f"group-of-{topic}",
        {topic_partition: Offset(7), TopicPartition("gone", 0): Offset(1)},
    )
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": f"group-of-{topic}"})
    try:
        (found,) = consumer.committed([Position(topic, 0)], timeout=20)
    finally:
        consumer.close()
    assert found.offset == 7


def test_concurrent_ranges_hold_each_record_once(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic)
    for _ in range(5):
        referee.produce(topic, written(37))
    topic_partition = TopicPartition(topic, 0)
    edges = [0, 1, 36, 37, 38, 100, 185]
    found = [
        row["offset"]
        for start, end in pairwise(edges)
        for row in rows(read_range(OffsetRange(topic_partition, start, end), settings(target)))
    ]
    assert found == list(range(185))


def tasks(target: Target, topic: str, **options: str) -> list[tuple[int, int]]:
    """Start and end of the ranges that a batch read is divided into."""
    given = {"kafka.bootstrap.servers": target.bootstrap, "subscribe": topic}
    read, _ = batch_settings(Options(given | options))
    return [(each.value.start, each.value.end) for each in batch_reader(read).partitions()]


def test_a_batch_ends_within_the_available_offsets(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic)
    referee.produce(topic, written(50))
    referee.delete_records(topic, 0, 20)
    assert tasks(target, topic) == [(20, 50)]
    for option, offset, words in [
        ("startingOffsets", 5, "starts at offset 20, not at 5"),
        ("startingOffsets", 51, "ends at offset 50, not at 51"),
        ("endingOffsets", 60, "ends at offset 50, not at 60"),
    ]:
        given = {option: f'{{"{topic}": {{"0": {offset}}}}}'}
        with pytest.raises(DataLoss, match=words):
            tasks(target, topic, **given)
        lenient = tasks(target, topic, **given, failOnDataLoss="false")
        assert lenient == ([] if offset == 51 else [(20, 50)])
    assert tasks(target, topic, minPartitions="3") == [(20, 30), (30, 40), (40, 50)]
    with pytest.raises(BrokerRefused, match="topic no-such-topic does not exist"):
        tasks(target, "no-such-topic")
