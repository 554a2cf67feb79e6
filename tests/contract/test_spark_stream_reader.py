"""The driver side of a stream, called as Spark calls it but without Spark."""

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from clients.brokers import Target
from clients.librdkafka import LibrdkafkaClient
from clients.protocol import Record, RefusedError
from clients.referee import Referee
from peers.process import wait_until
from penstock.client.errors import BrokerRefused
from penstock.errors import ErrorCode
from penstock.spark.options import Options
from penstock.spark.source.batch_reader import batch_reader
from penstock.spark.source.data_loss import DataLoss
from penstock.spark.source.settings import batch_settings, stream_settings
from penstock.spark.source.stream_reader import StreamReader

EVERYTHING = ReadAllAvailable()


@contextmanager
def reading(target: Target, topic: str, **options: object) -> Iterator[StreamReader]:
    given = {"kafka.bootstrap.servers": target.bootstrap, "subscribe": topic}
    given |= {"startingOffsets": "earliest"} | {k: str(v) for k, v in options.items()}
    settings, _ = stream_settings(Options(given))
    reader = StreamReader(settings)
    try:
        yield reader
    finally:
        reader.stop()


def write(target: Target, topic: str, count: int, partition: int = 0) -> None:
    # A new client each time: an old one may not know a partition that was just added.
    client = LibrdkafkaClient(target.bootstrap)
    client.produce(topic, [Record(b"v", partition=partition) for _ in range(count)])
    client.close()


def planned(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    return [str(each.value) for each in reader.partitions(start, end)]


def made_anew(referee: Referee, topic: str) -> None:
    referee.delete_topic(topic)

    def is_made() -> bool:
        """Whether the topic is created. A worker that has not learned of the deletion refuses it
        for a while.
        """
        try:
            referee.create_topic(topic)
        except RefusedError as refused:
            if refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            return False
        return True

    wait_until(is_made, 20, "the topic to be gone, and made again")


def test_batches_are_planned_from_position_to_position(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic, 2)
    write(target, topic, 10)
    with reading(target, topic) as reader:
        start = reader.initialOffset()
        assert start == {topic: {"0": 0, "1": 0}}
        end = reader.latestOffset(start, EVERYTHING)
        assert end == {topic: {"0": 10, "1": 0}}
        assert reader.reportLatestOffset() == end
        assert planned(reader, start, end) == [f"{topic}-0 [0, 10)"]
        assert reader.latestOffset(end, EVERYTHING) == end
        assert reader.partitions(end, end) == []
        copied = pickle.loads(pickle.dumps(reader))
        (task,) = reader.partitions(start, end)
        assert sum(each.num_rows for each in copied.read(task)) == 10


def test_trigger_limits_come_from_options(target: Target, referee: Referee, topic: str) -> None:
    referee.create_topic(topic)
    write(target, topic, 100)
    start = {topic: {"0": 0}}
    with reading(target, topic, maxOffsetsPerTrigger=30) as reader:
        assert reader.getDefaultReadLimit() == ReadMaxRows(30)
        assert reader.latestOffset(start, ReadMaxRows(30)) == {topic: {"0": 30}}
        assert reader.latestOffset(start, EVERYTHING) == {topic: {"0": 100}}
    with reading(target, topic, minOffsetsPerTrigger=30, maxTriggerDelay="1h") as reader:
        limit = reader.getDefaultReadLimit()
        assert limit == ReadMinRows(30)
        first = reader.latestOffset(start, limit)
        assert first == {topic: {"0": 100}}
        write(target, topic, 29)
        assert reader.latestOffset(first, limit) == first
        write(target, topic, 1)
        assert reader.latestOffset(first, limit) == {topic: {"0": 130}}
    with reading(target, topic) as reader:
        assert reader.getDefaultReadLimit() == EVERYTHING


def test_an_available_now_run_ends_at_the_end_offsets_of_its_start(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic)
    write(target, topic, 50)
    with reading(target, topic, minOffsetsPerTrigger=20, maxOffsetsPerTrigger=30) as reader:
        reader.prepareForTriggerAvailableNow()
        write(target, topic, 50)
        limit = reader.getDefaultReadLimit()
        start, ends = reader.initialOffset(), []
        while (end := reader.latestOffset(start, limit)) != start:
            ends.append(end[topic]["0"])
            start = end
        assert ends == [30, 50]


LATEST = {"startingOffsets": "latest"}
NO_LATER_TIME = {
    "startingTimestamp": 2**42,
    "startingOffsetsByTimestampStrategy": "latest",
}


@pytest.mark.parametrize("start_options", [LATEST, NO_LATER_TIME], ids=["latest", "by time"])
def test_a_stream_from_the_latest_offset_reads_all_that_follows_its_first_look(
    target: Target, referee: Referee, topic: str, start_options: dict[str, Any]
) -> None:
    referee.create_topic(topic)
    write(target, topic, 10)
    with reading(target, topic, **start_options) as reader:
        start = reader.initialOffset()
        write(target, topic, 5)
        assert reader.initialOffset() == start == {topic: {"0": 10}}
        end = reader.latestOffset(start, EVERYTHING)
        assert end == start, "the first micro-batch writes the start to the checkpoint"
        assert reader.partitions(start, end) == []
        following = reader.latestOffset(end, EVERYTHING)
        assert planned(reader, end, following) == [f"{topic}-0 [10, 15)"]
    referee.create_partitions(topic, 2)
    write(target, topic, 5)
    write(target, topic, 3, 1)
    with reading(target, topic, **start_options) as restarted:  # the first was not committed
        assert restarted.partitions(end, end) == []  # Spark shows it the checkpoint's offset
        later = restarted.initialOffset()
        assert later == {topic: {"0": 20, "1": 3}}
        assert restarted.partitions(later, end) == []
        assert restarted.partitions(later, end) == []
        following = restarted.latestOffset(end, EVERYTHING)
        assert planned(restarted, end, following) == [f"{topic}-0 [10, 20)", f"{topic}-1 [0, 3)"]


def test_an_available_now_run_from_the_latest_offset_reads_nothing_at_first(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic)
    write(target, topic, 10)
    with reading(target, topic, **LATEST) as reader:
        reader.prepareForTriggerAvailableNow()
        write(target, topic, 5)
        start = reader.initialOffset()
        assert start == {topic: {"0": 10}}
        end = reader.latestOffset(start, EVERYTHING)
        assert reader.partitions(start, end) == []
        assert reader.latestOffset(end, EVERYTHING) == end
    with reading(target, topic, **LATEST) as following:
        following.prepareForTriggerAvailableNow()
        now = following.latestOffset(end, EVERYTHING)
        assert planned(following, end, now) == [f"{topic}-0 [10, 15)"]


def committed(target: Target, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": group})
    try:
        (found,) = consumer.committed([Position(topic, 0)], timeout=20)
        return int(found.offset)
    finally:
        consumer.close()


def test_a_batch_is_committed_to_the_group_when_the_next_is_planned(
    target: Target, referee: Referee, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    referee.create_topic(topic)
    write(target, topic, 10)
    with reading(target, topic, groupId=f"stream-{topic}") as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, EVERYTHING)
        assert committed(target, f"stream-{topic}", topic) == 0
        assert reader.latestOffset(end, EVERYTHING) == end
        assert committed(target, f"stream-{topic}", topic) == 10
        # A group with members refuses the commit; the stream continues.
        member = referee.join(f"stream-{topic}", topic)
        try:
            wait_until(lambda: bool(member.poll().assigned), 30, "the member to be in")
            reader.commit({topic: {"0": 3}})
            assert "could not commit the progress to group" in caplog.text
        finally:
            member.leave()


def test_added_partitions_are_read_from_their_first_record(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic)
    write(target, topic, 5)
    with reading(target, topic) as reader:
        start = reader.latestOffset(reader.initialOffset(), EVERYTHING)
        referee.create_partitions(topic, 2)
        write(target, topic, 7, 1)
        end = reader.latestOffset(start, EVERYTHING)
        assert end == {topic: {"0": 5, "1": 7}}
        assert planned(reader, start, end) == [f"{topic}-1 [0, 7)"]
        referee.delete_records(topic, 1, 3)
        with pytest.raises(DataLoss, match=f"{topic}-1 was added and starts at offset 3, not at 0"):
            reader.partitions(start, end)


def test_a_missing_topic_is_an_error_at_the_start(target: Target) -> None:
    with reading(target, "no-such-topic") as reader:
        with pytest.raises(BrokerRefused, match="topic no-such-topic does not exist"):
            reader.initialOffset()
        with pytest.raises(BrokerRefused, match="topic no-such-topic does not exist"):
            reader.prepareForTriggerAvailableNow()


@pytest.mark.parametrize("records", [3, 30], ids=["shorter", "longer"])
def test_a_recreated_topic_is_data_loss_or_read_from_its_start(
    target: Target, referee: Referee, topic: str, records: int
) -> None:
    referee.create_topic(topic)
    write(target, topic, 10)
    with reading(target, topic) as strict, reading(target, topic, failOnDataLoss=False) as lenient:
        starts = [each.latestOffset(each.initialOffset(), EVERYTHING) for each in (strict, lenient)]
        made_anew(referee, topic)
        write(target, topic, records)
        for reader, start in zip((strict, lenient), starts, strict=True):
            end = reader.latestOffset(start, EVERYTHING)
            assert end == {topic: {"0": records}}
            if reader is lenient:
                for _ in range(2):  # Spark may plan a micro-batch again
                    assert planned(reader, start, end) == [f"{topic}-0 [0, {records})"]
                write(target, topic, 1)
                following = reader.latestOffset(end, EVERYTHING)
                assert planned(reader, end, following) == [f"{topic}-0 [{records}, {records + 1})"]
            else:
                with pytest.raises(DataLoss, match="its topic was recreated"):
                    reader.partitions(start, end)


def test_tasks_read_the_topic_that_they_were_planned_for(
    target: Target, referee: Referee, topic: str
) -> None:
    referee.create_topic(topic)
    write(target, topic, 10)
    options = {"kafka.bootstrap.servers": target.bootstrap, "subscribe": topic}
    batch = batch_reader(batch_settings(Options(options))[0])
    (of_batch,) = batch.partitions()
    start, end = {topic: {"0": 0}}, {topic: {"0": 10}}
    with reading(target, topic) as strict, reading(target, topic, failOnDataLoss=False) as lenient:
        assert [each.latestOffset(start, EVERYTHING) for each in (strict, lenient)] == [end, end]
        (of_strict,), (of_lenient,) = (each.partitions(start, end) for each in (strict, lenient))
        made_anew(referee, topic)
        write(target, topic, 11)
        with pytest.raises(DataLoss, match="its topic was recreated"):
            list(batch.read(of_batch))
        with pytest.raises(DataLoss, match="its topic was recreated"):
            list(strict.read(of_strict))
        assert list(lenient.read(of_lenient)) == []
        following = lenient.latestOffset(end, EVERYTHING)
        assert planned(lenient, end, following) == [f"{topic}-0 [0, 11)"]


def test_a_deleted_topic_is_data_loss_or_left_out(
    target: Target, referee: Referee, topic: str
) -> None:
    names = [f"{topic}-a", f"{topic}-b"]
    for name in names:
        referee.create_topic(name)
        write(target, name, 4)
    both = ",".join(names)
    options = {"failOnDataLoss": False, "kafka.default.api.timeout.ms": 2_000}
    with reading(target, both) as strict, reading(target, both, **options) as lenient:
        start = strict.latestOffset(strict.initialOffset(), EVERYTHING)
        assert lenient.latestOffset(lenient.initialOffset(), EVERYTHING) == start
        referee.delete_topic(names[0])
        with pytest.raises(DataLoss, match=f"topic {names[0]} does not exist any more"):
            strict.latestOffset(start, EVERYTHING)
        write(target, names[1], 2)
        end = lenient.latestOffset(start, EVERYTHING)
        assert end == {names[1]: {"0": 6}}
        assert planned(lenient, start, end) == [f"{names[1]}-0 [4, 6)"]


def test_a_planned_topic_that_was_deleted_is_left_out_by_the_next_run_too(
    target: Target, referee: Referee, topic: str
) -> None:
    names = [f"{topic}-a", f"{topic}-b"]
    for name in names:
        referee.create_topic(name)
        write(target, name, 4)
    options = {"failOnDataLoss": False, "kafka.default.api.timeout.ms": 2_000}
    with reading(target, ",".join(names), **options) as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, EVERYTHING)
        tasks = reader.partitions(start, end)
    referee.delete_topic(names[0])

    def rows(reader: StreamReader, tasks: Iterable[InputPartition]) -> int:
        return sum(batch.num_rows for each in tasks for batch in reader.read(each))

    with reading(target, ",".join(names), **options) as again:
        assert rows(again, tasks) == 4
        assert rows(again, again.partitions(again.initialOffset(), end)) == 4
        assert again.latestOffset(end, EVERYTHING) == {names[1]: {"0": 4}}
