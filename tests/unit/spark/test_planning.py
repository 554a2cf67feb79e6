"""Decisions of the driver: ranges and their splits, pace, filters, lost records."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from penstock.errors import ConfigError
from penstock.spark.options import Options
from penstock.spark.source.admission import TriggerLimits, limited, waits
from penstock.spark.source.data_loss import DataLoss, report, resumed
from penstock.spark.source.filters import pushed
from penstock.spark.source.ranges import OffsetRange, cut
from penstock.spark.source.settings import SOURCE, batch_settings, stream_settings
from penstock.types import Offset, TopicPartition, Uuid

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
OF_TOPIC = Uuid(b"t" * 16)
NEEDED = {"kafka.bootstrap.servers": "h:1", "subscribe": "a"}


def at(**offsets: int) -> dict[TopicPartition, Offset]:
    return {TopicPartition(name[0], int(name[1:])): Offset(n) for name, n in offsets.items()}


sizes = st.lists(st.integers(0, 1000), max_size=6)


@given(sizes, st.integers(0, 40), st.integers(0, 50))
def test_cut_ranges_hold_the_same_offsets(
    drawn: list[int], at_least: int, at_most_records: int
) -> None:
    whole = [
        OffsetRange(TopicPartition("t", n), 100, 100 + size, OF_TOPIC)
        for n, size in enumerate(drawn)
    ]
    pieces = cut(whole, at_least=at_least, at_most_records=at_most_records)
    covered = {
        topic_partition: list[int]() for topic_partition in (each.topic_partition for each in whole)
    }
    for piece in pieces:
        assert piece.size > 0
        assert piece.topic_id == OF_TOPIC
        covered[piece.topic_partition] += range(piece.start, piece.end)
    assert all(covered[each.topic_partition] == list(range(each.start, each.end)) for each in whole)
    assert len(pieces) >= min(at_least, sum(drawn))
    if at_most_records:
        assert all(piece.size <= at_most_records for piece in pieces)


def test_the_largest_range_is_cut_first() -> None:
    pieces = cut([OffsetRange(A0, 0, 10), OffsetRange(A1, 0, 90)], at_least=4)
    assert [piece.size for piece in pieces] == [10, 30, 30, 30]


def test_a_batch_is_divided_in_proportion_to_the_partitions() -> None:
    start, latest = at(a0=0, a1=10, b0=5), at(a0=900, a1=110, b0=6)
    assert limited(100, start, latest) == at(a0=89, a1=19, b0=6)
    assert limited(5000, start, latest) == latest
    assert limited(3, at(a0=5), at(a0=4)) == at(a0=4)


def test_a_batch_waits_for_enough_records_but_not_forever() -> None:
    limits = TriggerLimits(at_least=100, delay_ms=1000)
    assert waits(limits, at(a0=0), at(a0=99), waited_ms=0)
    assert not waits(limits, at(a0=0), at(a0=100), waited_ms=0)
    assert not waits(limits, at(a0=0), at(a0=1), waited_ms=1000)
    assert not waits(TriggerLimits(), at(a0=0), at(a0=1), waited_ms=0)


@pytest.mark.parametrize(
    ("text", "delay_ms"),
    [("15m", 900_000), ("90s", 90_000), ("7", 7), ("1h", 3_600_000), ("2min", 120_000)],
)
def test_delays_are_written_as_spark_writes_them(text: str, delay_ms: int) -> None:
    settings, _ = stream_settings(Options({**NEEDED, "maxTriggerDelay": text}))
    assert settings.limits.delay_ms == delay_ms


def test_contradicting_options_are_errors() -> None:
    for options, words in [
        ({"maxTriggerDelay": "soon"}, "not a time like 90s"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "above maxOffsetsPerTrigger"),
        ({"endingOffsets": "latest"}, "a stream has no end"),
        ({"kafka.auto.offset.reset": "latest"}, "use startingOffsets"),
        ({"groupId": ""}, "groupId is missing"),
        ({"minPartitions": "0"}, "below 1"),
    ]:
        with pytest.raises(ConfigError, match=words):
            stream_settings(Options({**NEEDED, **options}))


def test_options_of_the_kafka_format_without_effect_give_a_warning() -> None:
    names = ["kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "groupIdPrefix"]
    _, warnings = batch_settings(Options({**NEEDED, **dict.fromkeys(names, "1")}))
    assert [each.split()[1] for each in warnings] == names
    _, warnings = batch_settings(Options({**NEEDED, "maxOffsetsPerTrigger": "5"}))
    assert warnings == ["option maxOffsetsPerTrigger has no effect: it is for streaming reads"]


def test_every_option_has_a_use_and_names_differ_by_more_than_case() -> None:
    assert len({name.lower() for name in SOURCE}) == len(SOURCE)


def test_lost_records_end_a_read_or_give_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLoss, match=r"a-0 is gone\. .*set option failOnDataLoss to false"):
        report("a-0 is gone", fail=True)
    report("a-0 is gone", fail=False)
    assert "a-0 is gone" in caplog.text


def test_reading_continues_after_data_loss_at_the_right_offset() -> None:
    assert resumed(5, 20, 10, 30) == (10, "offsets 5 to 9 are gone")
    assert resumed(5, 20, 25, 30)[0] == 20
    assert resumed(15, 20, 0, 7)[0] == 20


def narrowed(*filters: Filter) -> tuple[dict[TopicPartition, tuple[int, int]], int]:
    narrowing, left = pushed(filters)
    ranges = [narrowing.narrowed(OffsetRange(each, 0, 100)) for each in (A0, A1, B0)]
    return {each.topic_partition: (each.start, each.end) for each in ranges if each.size}, len(left)


def test_filters_narrow_ranges() -> None:
    partition, offset, topic = ("partition",), ("offset",), ("topic",)
    everything = {A0: (0, 100), A1: (0, 100), B0: (0, 100)}
    three = dict.fromkeys(everything, (9, 12))
    for filters, expected in [
        ((), (everything, 0)),
        ((EqualTo(partition, 1),), ({A1: (0, 100)}, 0)),
        ((In(partition, (0, 5)), EqualTo(topic, "a")), ({A0: (0, 100)}, 0)),
        ((In(topic, ("b", "c")), GreaterThan(offset, 9)), ({B0: (10, 100)}, 0)),
        ((GreaterThanOrEqual(offset, 9), LessThan(offset, 12)), (three, 0)),
        ((LessThanOrEqual(offset, 3), EqualNullSafe(topic, "b")), ({B0: (0, 4)}, 0)),
        ((EqualTo(offset, 7), EqualTo(offset, 8)), ({}, 0)),
        ((IsNotNull(offset), IsNotNull(topic)), (everything, 0)),
        ((IsNotNull(("key",)), IsNull(offset), Not(EqualTo(offset, 1))), (everything, 3)),
        ((EqualTo(("key",), b"x"), EqualTo(offset, 1.5)), (everything, 2)),
        ((EqualTo(("headers", "key"), "x"),), (everything, 1)),
    ]:  # fmt: skip
        assert narrowed(*filters) == expected, filters


def test_filters_on_time_round_to_milliseconds() -> None:
    moment = datetime(2024, 1, 1, 0, 0, 0, 1500, tzinfo=UTC)
    ms = 1_704_067_200_001
    for each, expected in [
        (GreaterThan(("timestamp",), moment), (ms + 1, None)),
        (GreaterThanOrEqual(("timestamp",), moment), (ms + 1, None)),
        (GreaterThanOrEqual(("timestamp",), moment.replace(microsecond=1000)), (ms, None)),
        (LessThan(("timestamp",), moment), (None, ms)),
        (LessThan(("timestamp",), moment.replace(microsecond=1000)), (None, ms - 1)),
    ]:
        narrowing, left = pushed([each])
        low, high = narrowing.time_ms
        assert left == [each]
        assert low == expected[0] if expected[0] is not None else low < 0
        assert high == expected[1] if expected[1] is not None else high > 1 << 62
    naive = GreaterThan(("timestamp",), datetime(2024, 1, 1))  # noqa: DTZ001 - that is the point
    assert pushed([naive])[0].time_ms[0] < 0
