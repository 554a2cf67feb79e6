"""Arrow rows: their partitions, their order, and which ones a retried task omits."""

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from penstock.client.partitioner import keyed_partition
from penstock.record.record import Record
from penstock.spark.sink.columns import sink_columns
from penstock.spark.sink.encode import RecordColumns
from penstock.spark.sink.epoch import EpochFailed, Fresh, Resumed
from penstock.spark.sink.partitioning import (
    RoundRobinPartitioner,
    TaskPartitioner,
    chosen_partitions,
    rows_by_partition,
)
from penstock.spark.sink.resuming import Resuming
from penstock.spark.sink.rows import BadRow, sink_rows
from penstock.types import TopicPartition

NOW_MS = 1_000


def seen_partitions(asked: list[int | None], keys: list[bytes | None], count: int) -> list[int]:
    batch = pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array([b""] * len(keys), pa.binary()),
            "partition": pa.array(asked, pa.int32()),
        }
    )
    columns = sink_columns({"key": "binary", "value": "binary", "partition": "int"}, topic="t")
    seen = sink_rows(batch, columns, NOW_MS)
    return list(
        chosen_partitions(
            "t", count, seen.rows, seen.partitions, seen.count, RoundRobinPartitioner(0)
        )
    )


@pytest.mark.row("A016")
def test_a_partition_comes_from_the_column_then_the_key_then_in_turn() -> None:
    expected = [7, keyed_partition(b"foobar", 10), 1]
    assert seen_partitions([7, None, None], [b"a", b"foobar", None], 10) == expected


def test_a_partition_beyond_the_topics_is_an_error() -> None:
    with pytest.raises(BadRow, match="column partition has 4, but topic t has partitions 0 to 3"):
        seen_partitions([0, 4], [None, None], 4)


def test_a_negative_partition_is_an_error() -> None:
    with pytest.raises(BadRow, match="column partition has -1; partitions count from 0"):
        seen_partitions([None, -1], [None, None], 4)


def test_rows_without_key_take_turns_by_batch_and_stay_in_a_task() -> None:
    turns = RoundRobinPartitioner(0)
    assert [turns.partition("t", 3) for _ in range(4)] == [1, 2, 0, 1]
    fixed = TaskPartitioner(5)
    assert [fixed.partition("t", 3) for _ in range(2)] == [2, 2]


def test_rows_are_grouped_by_partition_in_their_order() -> None:
    chosen = np.array([2, 0, 2, 1, 0], np.int32)
    found = {partition: list(rows) for partition, rows in rows_by_partition(chosen, None, 3)}
    assert found == {0: [1, 4], 1: [3], 2: [0, 2]}
    some = np.array([0, 2, 4], np.int32)
    assert {p: list(rows) for p, rows in rows_by_partition(chosen, some, 3)} == {0: [4], 2: [0, 2]}
    assert [(p, list(rows)) for p, rows in rows_by_partition(chosen, some[:0], 3)] == []
    one = np.zeros(3, np.int32)
    assert [(p, list(rows)) for p, rows in rows_by_partition(one, None, 1)] == [(0, [0, 1, 2])]


def test_rows_are_written_to_the_topics_they_name() -> None:
    batch = pa.record_batch({"value": ["1", "2", "3"], "topic": ["b", "a", "b"]})
    columns = sink_columns({"value": "string", "topic": "string"}, topic=None)
    topics = sink_rows(batch, columns, NOW_MS).topics
    assert topics is not None
    assert {topic: list(rows) for topic, rows in topics} == {"b": [0, 2], "a": [1]}


def test_a_row_without_topic_is_an_error() -> None:
    batch = pa.record_batch({"value": ["1"], "topic": pa.array([None], pa.string())})
    columns = sink_columns({"value": "string", "topic": "string"}, topic=None)
    with pytest.raises(BadRow, match="column topic has a null"):
        sink_rows(batch, columns, NOW_MS)


def test_a_missing_timestamp_is_now() -> None:
    times = [datetime(1970, 1, 1, 0, 0, 2, 1999, tzinfo=UTC), None]
    before = datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC)
    batch = pa.record_batch(
        {"value": ["", "", ""], "timestamp": pa.array([*times, before], pa.timestamp("us", "UTC"))}
    )
    types = {"value": "string", "timestamp": "timestamp"}
    columns = sink_columns(types, topic="t", with_timestamps=True)
    assert list(sink_rows(batch, columns, NOW_MS).timestamps) == [2_001, NOW_MS, -1]
    assert list(sink_rows(batch, sink_columns(types, topic="t"), NOW_MS).timestamps) == [NOW_MS] * 3


PLACE = TopicPartition("out", 0)


def record(value: bytes) -> Record:
    return Record(0, 5, b"k", value, [("h", b"1")])


def rows_of(*values: bytes) -> RecordColumns:
    headers = [[{"key": "h", "value": b"1"}]] * len(values)
    batch = pa.record_batch(
        {
            "key": pa.array([b"k"] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(
                headers, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
            ),
        }
    )
    types = {
        "key": "binary",
        "value": "binary",
        "headers": "array<struct<key:string,value:binary>>",
    }
    return sink_rows(batch, sink_columns(types, topic="out"), 0).rows


def resuming(*written: bytes) -> Resuming:
    def read_back(topic_partition: TopicPartition, found: Resumed) -> Iterator[Record]:  # noqa: ARG001
        return map(record, written)

    made = Resuming(read_back)
    assert made.is_new(PLACE)
    sequences = made.begin({PLACE: Resumed(0, len(written)) if written else Fresh()})
    assert sequences == {PLACE: len(written)}
    assert not made.is_new(PLACE)
    return made


ORDER = np.arange(3, dtype=np.int32)


def test_a_first_attempt_writes_all_its_rows() -> None:
    fresh = resuming()
    assert list(fresh.unwritten(PLACE, rows_of(b"1", b"2", b"3"), ORDER)) == [0, 1, 2]
    fresh.finish()


def test_a_retry_resumes_after_equal_rows_even_in_later_batches() -> None:
    retry = resuming(b"1", b"2", b"3", b"4")
    assert list(retry.unwritten(PLACE, rows_of(b"1", b"2", b"3"), ORDER)) == []
    assert list(retry.unwritten(PLACE, rows_of(b"4", b"5", b"6"), ORDER)) == [1, 2]
    assert list(retry.unwritten(PLACE, rows_of(b"7", b"8", b"9"), ORDER)) == [0, 1, 2]
    retry.finish()


def test_a_retry_with_other_rows_fails_with_advice() -> None:
    with pytest.raises(
        EpochFailed, match=r"out-0: row 1 of this attempt .*repartitionById.*deterministic"
    ):
        resuming(b"1", b"2").unwritten(PLACE, rows_of(b"1", b"x", b"3"), ORDER)


def test_a_retry_with_fewer_rows_fails() -> None:
    retry = resuming(b"1", b"2", b"3", b"4")
    retry.unwritten(PLACE, rows_of(b"1", b"2", b"3"), ORDER)
    with pytest.raises(EpochFailed, match="this attempt has 3 rows, but 4 are written"):
        retry.finish()


@pytest.mark.parametrize(
    "changed",
    [
        Record(0, 5, None, b"1", [("h", b"1")]),
        Record(0, 5, b"k", None, [("h", b"1")]),
        Record(0, 5, b"k", b"1", []),
        Record(0, 5, b"k", b"1", [("h", None)]),
    ],
)
def test_key_value_and_headers_are_compared(changed: Record) -> None:
    made = Resuming(lambda _place, _found: iter([changed]))
    made.begin({PLACE: Resumed(0, 1)})
    with pytest.raises(EpochFailed):
        made.unwritten(PLACE, rows_of(b"1"), ORDER[:1])
