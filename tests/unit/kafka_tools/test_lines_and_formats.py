"""Lines become records in the console producer, and records lines in the console consumer."""

from collections.abc import Mapping

import pytest

from penstock.client.consume import ConsumedRecord
from penstock.kafka_tools.configs import parse_configs
from penstock.kafka_tools.formatters import default_formatter
from penstock.kafka_tools.group_errors import GroupError
from penstock.kafka_tools.group_reset import parse_datetime
from penstock.kafka_tools.internal_formatters import old_offsets_formatter
from penstock.kafka_tools.java_order import java_hash, java_order, partition_hash
from penstock.kafka_tools.line_reader import KafkaLineReader
from penstock.kafka_tools.perf_stats import LatencyStats
from penstock.kafka_tools.tool import ToolError
from penstock.record.record import Record
from penstock.types import TopicPartition
from penstock.wire.codec import encode
from penstock.wire.messages.offset_commit_key import OffsetCommitKey
from penstock.wire.messages.offset_commit_value import OffsetCommitValue

BOTH = {"parse.key": "true", "parse.headers": "true"}


@pytest.mark.parametrize(
    ("properties", "line", "fields"),
    [
        ({}, b"a\tb", (None, b"a\tb", ())),
        ({"parse.key": "true"}, b"a\tb", (b"a", b"b", ())),
        ({"parse.key": "true", "key.separator": ":"}, b"a:b", (b"a", b"b", ())),
        (BOTH, b"h:1,i:2\tk\tv", (b"k", b"v", [("h", b"1"), ("i", b"2")])),
        ({**BOTH, "null.marker": "NULL"}, b"NULL\tNULL\tNULL", (None, None, ())),
        ({"parse.key": "true", "ignore.error": "true"}, b"v", (None, b"v", ())),
    ],
)
def test_a_line_is_parsed_according_to_the_properties(
    properties: Mapping[str, str], line: bytes, fields: object
) -> None:
    assert KafkaLineReader.of(properties).read(line) == fields


def test_an_error_about_a_missing_separator_has_the_line_number() -> None:
    reader = KafkaLineReader.of({"parse.key": "true"})
    reader.read(b"a\tb")
    with pytest.raises(ToolError, match="No key separator found on line number 2: 'c'"):
        reader.read(b"c")


def consumed(**fields: object) -> ConsumedRecord:
    known = {"offset": 7, "timestamp": 5, "key": b"k", "value": b"v", "headers": []}
    return ConsumedRecord(TopicPartition("t", 1), Record(**{**known, **fields}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("properties", "line"),
    [
        ({}, b"v\n"),
        ({"print.key": "true", "key.separator": "-"}, b"k-v\n"),
        ({"print.value": "false", "print.offset": "true"}, b"Offset:7\n"),
        ({"print.headers": "true"}, b"NO_HEADERS\tv\n"),
        ({"print.timestamp": "true", "print.partition": "true"}, b"CreateTime:5\tPartition:1\tv\n"),
    ],
)
def test_a_record_is_printed_according_to_the_properties(
    properties: Mapping[str, str], line: bytes
) -> None:
    formatter = default_formatter(properties, timestamp_type=lambda _: "CreateTime")
    assert formatter(consumed()) == line


def test_numbers_are_deserialized_and_nothing_is_null() -> None:
    properties = {"value.deserializer": "org.apache.kafka.common.serialization.LongDeserializer"}
    formatter = default_formatter(properties, timestamp_type=lambda _: "CreateTime")
    assert formatter(consumed(value=(3).to_bytes(8, "big"))) == b"3\n"
    assert formatter(consumed(value=None)) == b"null\n"
    with pytest.raises(ToolError, match="Size of data received by deserializer is not 8"):
        formatter(consumed(value=b"short"))


@pytest.mark.row("A134")
def test_the_old_formatter_prints_the_line_of_old_documents() -> None:
    key = OffsetCommitKey(group="group", topic="topic", partition=3)
    value = OffsetCommitValue(offset=20, metadata="", commit_timestamp=1596424702212)
    record = consumed(key=b"\x00\x01" + encode(key, 0), value=b"\x00\x03" + encode(value, 3))
    assert old_offsets_formatter(86_400_000)(record) == (
        b"[group,topic,3]::[OffsetMetadata[20,NO_METADATA],CommitTime 1596424702212,"
        b"ExpirationTime 1596511102212]\n"
    )


def test_javas_order_is_computed() -> None:
    assert java_hash("hello") == 99162322
    names = ["max.message.bytes", "segment.bytes", "retention.ms", "cleanup.policy"]
    assert sorted(java_order(names, java_hash)) == sorted(names)
    partitions = [TopicPartition("t", index) for index in range(3)]
    assert [each.partition for each in java_order(partitions, partition_hash)] == [2, 1, 0]


def test_settings_in_brackets_keep_their_commas() -> None:
    assert parse_configs("a=1,b=[x,y],c=z") == {"a": "1", "b": "x,y", "c": "z"}


def test_times_are_utc_and_need_a_t() -> None:
    assert parse_datetime("1970-01-01T00:00:01.500") == 1500
    assert parse_datetime("1970-01-01T01:00:00+01:00") == 0
    with pytest.raises(GroupError, match="does not contain a 'T'"):
        parse_datetime("yesterday")


def test_figures_are_printed_as_kafkas_tool_prints_them() -> None:
    stats = LatencyStats(0.0)
    stats.record([10] * 90 + [20] * 10, 1024 * 1024)
    assert stats.window_line(1.0) == (
        "100 records sent, 100.0 records/sec (1.00 MB/sec), 11.0 ms avg latency, 20.0 ms max "
        "latency."
    )
    assert stats.total_line(2.0) == (
        "100 records sent, 50.000000 records/sec (0.50 MB/sec), 11.00 ms avg latency, 20.00 ms max "
        "latency, 10 ms 50th, 20 ms 95th, 20 ms 99th, 20 ms 99.9th."
    )


def test_a_header_whose_name_is_not_utf8_is_printed_unchanged() -> None:
    record = Record(0, 0, None, b"v", [("n\udcff", b"x")])
    formatter = default_formatter({"print.headers": "true"}, timestamp_type=lambda _: "CreateTime")
    assert formatter(ConsumedRecord(TopicPartition("t", 0), record)) == b"n\xff:x\tv\n"
