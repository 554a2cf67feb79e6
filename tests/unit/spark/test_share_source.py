"""Decisions of the share group source: which records are locked, done, and read by which task."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.share_session import FetchLimits, ShareSessionHandler
from penstock.errors import ConfigError
from penstock.spark.options import Options
from penstock.spark.source.positions import from_json
from penstock.spark.source.settings import batch_settings, stream_settings
from penstock.spark.source.share.held_records import (
    MAX_LOCKS,
    HeldRecords,
    IdentifiedRecords,
    at_most,
    count,
)
from penstock.spark.source.share.offset_ranges import OffsetRanges, parse_ranges
from penstock.spark.source.share.read import kept
from penstock.spark.source.share.session import MemberSession
from penstock.spark.source.share.share_offset import SparkShareOffset, share_offset
from penstock.spark.source.share.task import divided
from penstock.types import TopicPartition, Uuid
from penstock.wire.enums import AcknowledgeType

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
FIRST, SECOND = Uuid(b"1" * 16), Uuid(b"2" * 16)
"""The ids of two successive topics with the name orders."""
LIMITS = FetchLimits(records=500, wait_ms=0)

offsets = st.sets(st.integers(0, 40))


def of(numbers: set[int]) -> OffsetRanges:
    return OffsetRanges.of((each, each + 1) for each in numbers)


def numbers(ranges: OffsetRanges) -> set[int]:
    return {each for start, end in ranges for each in range(start, end)}


@given(offsets, offsets)
def test_ranges_are_sets_of_offsets(one: set[int], two: set[int]) -> None:
    for found, expected in [
        (of(one) | of(two), one | two),
        (of(one) & of(two), one & two),
        (of(one) - of(two), one - two),
        (parse_ranges(str(of(one))), one),
    ]:
        assert numbers(found) == expected
        assert found == of(expected), "equal sets are equal ranges"
        assert (found.count, bool(found)) == (len(expected), bool(expected))


@given(offsets, st.integers(0, 45), st.integers(0, 45))
def test_a_part_is_chosen_by_number(all_of: set[int], first: int, last: int) -> None:
    assert numbers(of(all_of).part(first, last)) == set(sorted(all_of)[first:last])


@given(offsets, offsets, st.integers(1, 9), st.integers(0, 30))
def test_each_record_is_read_by_one_task(
    one: set[int], two: set[int], tasks: int, limit: int
) -> None:
    records = {tp: of(each) for tp, each in ((TP, one), (OTHER, two)) if each}
    pieces = divided(records, {}, at_least=tasks, at_most_records=limit)
    for tp, expected in ((TP, one), (OTHER, two)):
        mine = [each.offsets for each in pieces if each.topic_partition == tp]
        assert sum(each.count for each in mine) == len(expected)
        assert set().union(*map(numbers, mine)) == expected
    assert len(pieces) >= min(tasks, len(one) + len(two))
    assert not limit or all(each.offsets.count <= limit for each in pieces)


def test_a_partition_may_have_several_tasks() -> None:
    records = {TP: parse_ranges("0-5,10-11,100")}
    assert [str(each) for each in divided(records, {}, at_least=3)] == [
        "orders-0 0-2",
        "orders-0 3-5",
        "orders-0 10-11,100",
    ]
    assert str(divided(records, {})[0].covering) == "orders-0 [0, 101)"


@given(offsets, offsets, st.integers(1, 30))
def test_a_micro_batch_has_a_maximum_size(one: set[int], two: set[int], limit: int) -> None:
    records = {tp: of(each) for tp, each in ((TP, one), (OTHER, two)) if each}
    found = at_most(limit, records)
    assert count(found) == min(limit, len(one) + len(two))
    assert all(numbers(each) <= numbers(records[tp]) for tp, each in found.items())


def test_a_task_keeps_its_own_rows_only() -> None:
    batch = pa.record_batch({"offset": pa.array(range(8)), "value": pa.array(list("abcdefgh"))})
    assert kept(batch, parse_ranges("1-2,5")).column("value").to_pylist() == ["b", "c", "f"]
    assert kept(batch, parse_ranges("9,12")).num_rows == 0
    assert kept(batch, parse_ranges("0-7")) is batch


def test_an_offset_is_json_of_primitive_values() -> None:
    records = {OTHER: parse_ranges("3,5-9"), TP: parse_ranges("1")}
    offset = SparkShareOffset("billing", 7, records, {"orders": FIRST})
    nested = json.loads(json.dumps(offset.as_json()))
    assert nested == {
        "shareGroup": "billing",
        "version": 2,
        "batch": 7,
        "records": {"orders": {"0": "1", "1": "3,5-9"}},
        "topicIds": {"orders": "MTExMTExMTExMTExMTExMQ"},
    }
    assert share_offset(nested, "billing") == offset


def test_a_checkpoint_without_topic_ids_is_read() -> None:
    """As Penstock wrote it before it stored ids."""
    nested = {"shareGroup": "billing", "batch": 7, "records": {"orders": {"0": "1"}}}
    assert share_offset(nested, "billing") == SparkShareOffset(
        "billing", 7, {TP: parse_ranges("1")}
    )


def test_a_checkpoint_of_a_later_version_is_refused() -> None:
    with pytest.raises(ConfigError, match="a later version of Penstock"):
        share_offset({**SparkShareOffset("billing").as_json(), "version": 3}, "billing")


def test_a_checkpoint_of_something_else_is_refused() -> None:
    with pytest.raises(ConfigError, match="without option shareGroup"):
        share_offset({"orders": {"0": 5}}, "billing")
    with pytest.raises(ConfigError, match="of share group audit, and option shareGroup is billing"):
        share_offset(SparkShareOffset("audit").as_json(), "billing")
    with pytest.raises(ConfigError, match="of share group audit; set option shareGroup"):
        from_json(SparkShareOffset("audit").as_json())


def holding() -> HeldRecords:
    held = HeldRecords()
    held.identify("orders", FIRST)
    return held


def finished(text: str, topic_id: Uuid = FIRST) -> IdentifiedRecords:
    return IdentifiedRecords({TP: parse_ranges(text)}, {"orders": topic_id})


def test_records_are_accepted_once_their_micro_batch_is_committed() -> None:
    held = holding()
    held.acquired(TP, parse_ranges("0-9"))
    assert (held.to_accept(), held.to_process()) == ({}, {TP: parse_ranges("0-9")})
    held.finished(finished("0-9"))
    held.acquired(TP, parse_ranges("10-12"))
    assert held.to_accept() == {TP: parse_ranges("0-9")}
    assert held.to_process() == {TP: parse_ranges("10-12")}
    held.accepted(TP, parse_ranges("0-9"))
    assert held.locked() == held.to_process() == {TP: parse_ranges("10-12")}
    assert held.to_accept() == {}


def test_a_processed_record_that_is_delivered_again_is_accepted_and_not_processed() -> None:
    held = holding()
    held.acquired(TP, parse_ranges("0-9"))
    held.lost(TP, parse_ranges("0-4"))
    held.finished(finished("0-9"))
    assert held.to_accept() == {TP: parse_ranges("5-9")}
    held.accepted(TP, parse_ranges("5-9"))
    held.acquired(TP, parse_ranges("0-4,20"))
    assert held.to_accept() == {TP: parse_ranges("0-4")}
    assert held.to_process() == {TP: parse_ranges("20")}


def test_an_unprocessed_record_whose_lock_was_lost_is_delivered_again() -> None:
    held = holding()
    held.acquired(TP, parse_ranges("0-9"))
    held.lost(TP, parse_ranges("0-9"))
    assert held.to_process() == {}
    held.acquired(TP, parse_ranges("0-9"))
    assert held.to_process() == {TP: parse_ranges("0-9")}


def test_records_that_can_never_be_delivered_again_are_forgotten() -> None:
    held = holding()
    for start in range(0, 10 * MAX_LOCKS, 1000):
        mine = OffsetRanges.of([(start, start + 999)])  # with gaps, so that they do not merge
        held.acquired(TP, mine)
        held.lost(TP, mine)
        held.finished(finished(str(mine)))
    assert len(held._finished[TP].ranges) <= MAX_LOCKS // 1000 + 1


def test_a_recreated_topic_starts_without_finished_records() -> None:
    held = holding()
    held.acquired(TP, parse_ranges("0-9"))
    held.finished(finished("0-9"))
    assert not held.identify("orders", FIRST)
    assert held.identify("orders", SECOND)
    held.acquired(TP, parse_ranges("0-3"))
    assert (held.to_accept(), held.to_process()) == ({}, {TP: parse_ranges("0-3")})


def test_a_micro_batch_of_a_deleted_topic_accepts_nothing_of_the_recreated_one() -> None:
    held = holding()
    held.acquired(TP, parse_ranges("0-9"))
    held.identify("orders", SECOND)
    held.finished(finished("0-9", FIRST))
    held.acquired(TP, parse_ranges("0-19"))
    assert (held.to_accept(), held.to_process()) == ({}, {TP: parse_ranges("0-19")})
    held.finished(finished("0-19", SECOND))
    assert held.to_accept() == {TP: parse_ranges("0-19")}


def test_a_recreated_topic_starts_afresh_even_if_nothing_of_the_former_one_was_locked() -> None:
    """A repeated micro-batch may have records that other members have taken meanwhile."""
    held = holding()
    held.finished(finished("0-9"))
    held.identify("orders", SECOND)
    held.acquired(TP, parse_ranges("0-9"))
    assert held.to_accept() == {}


def test_a_micro_batch_of_earlier_records_does_not_forget_finished_later_ones() -> None:
    held = holding()
    held.acquired(TP, parse_ranges("50-99"))
    held.finished(finished("50-99"))
    held.lost(TP, parse_ranges("50-99"))
    held.acquired(TP, parse_ranges("0-49"))
    held.finished(finished("0-49"))
    held.accepted(TP, parse_ranges("0-49"))
    held.acquired(TP, parse_ranges("50-99"))
    assert (held.to_process(), held.to_accept()) == ({}, {TP: parse_ranges("50-99")})


def test_an_available_now_run_ends_where_the_log_ended() -> None:
    held = holding()
    held.acquired(TP, parse_ranges("0-9"))
    held.acquired(OTHER, parse_ranges("0-9"))
    assert held.to_process({TP: 4}) == {TP: parse_ranges("0-3")}
    assert count(held.locked()) == 20


def session() -> MemberSession:
    ids = {"orders": Uuid(b"o" * 16), "audit": Uuid(b"a" * 16)}
    return MemberSession(ShareSessionHandler("billing", "m"), ids)


def test_requests_of_a_session_are_numbered() -> None:
    mine = session()
    assert mine.fetch([TP], LIMITS).share_session_epoch == 0
    asked = mine.acknowledge(AcknowledgeType.RENEW, {TP: parse_ranges("3,5-9")})
    assert (asked.share_session_epoch, asked.is_renew_ack) == (1, True)
    (part,) = asked.topics[0].partitions
    assert [
        (each.first_offset, each.last_offset, each.acknowledge_types)
        for each in part.acknowledgement_batches
    ] == [(3, 3, [4]), (5, 9, [4])]


def test_a_session_forgets_partitions_assigned_to_others() -> None:
    mine, audit = session(), TopicPartition("audit", 3)
    mine.fetch([TP, OTHER, audit], LIMITS)
    request = mine.fetch([OTHER], LIMITS)
    forgotten = {each.topic_id: each.partitions for each in request.forgotten_topics_data}
    assert forgotten == {Uuid(b"o" * 16): [0], Uuid(b"a" * 16): [3]}
    assert mine.partitions == {TP, OTHER, audit}, "it may have locked records of them still"


GIVEN = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders", "shareGroup": "g"}


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("startingOffsets", "earliest", "share.auto.offset.reset"),
        ("startingTimestamp", "1", "share.auto.offset.reset"),
        ("endingOffsets", "latest", "a stream has no end"),
        ("groupId", "g", "keeps its own progress"),
        ("minOffsetsPerTrigger", "5", "would be locked meanwhile"),
        ("kafka.isolation.level", "read_committed", "share.isolation.level"),
        ("shareGroup", " ", "option shareGroup is missing"),
    ],
)
def test_options_that_do_not_fit_a_share_group_are_errors(
    option: str, value: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=f"{option}.*{words}|{words}"):
        stream_settings(Options({**GIVEN, option: value}))


@pytest.mark.parametrize("way", ["subscribePattern", "assign"])
def test_a_share_group_subscribes_by_name(way: str) -> None:
    given = {**GIVEN, way: '{"orders": [0]}'}
    del given["subscribe"]
    with pytest.raises(ConfigError, match=f"option {way} cannot be used with shareGroup"):
        stream_settings(Options(given))


def test_a_share_group_is_not_read_as_a_batch() -> None:
    with pytest.raises(ConfigError, match="use readStream with the trigger availableNow"):
        batch_settings(Options(GIVEN))


def test_a_share_group_takes_the_limits_of_other_streams() -> None:
    settings, warnings = stream_settings(
        Options({**GIVEN, "maxOffsetsPerTrigger": "10", "minPartitions": "4"})
    )
    assert (settings.share_group, settings.limits.at_most, settings.min_partitions) == ("g", 10, 4)
    assert warnings == []
