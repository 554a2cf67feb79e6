"""Where reads start and end, and which partitions they have, as pure functions."""

import pytest

from penstock.client.listing import EARLIEST, LATEST
from penstock.client.metadata import PartitionMetadata, TopicMetadata
from penstock.errors import ConfigError
from penstock.spark.options import Options
from penstock.spark.source.bounds import (
    FROM_EARLIEST,
    FROM_LATEST,
    Bound,
    GivenOffsets,
    GivenTimes,
    at_end,
    check_batch,
    read_end,
    read_start,
    resolved_offsets,
    timestamps_to_list,
)
from penstock.spark.source.positions import as_json, from_json
from penstock.spark.source.subscription import (
    Assigned,
    Pattern,
    SubscribedTopics,
    read_subscription,
    subscribed,
    wanted_names,
)
from penstock.types import NO_UUID, BrokerId, LeaderEpoch, Offset, TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_positions_are_the_kafka_formats_json() -> None:
    offsets = {A1: Offset(5), B0: Offset(1), A0: Offset(7)}
    assert as_json(offsets) == {"a": {"0": 7, "1": 5}, "b": {"0": 1}}
    assert from_json(as_json(offsets)) == offsets


@pytest.mark.parametrize(
    ("options", "bound"),
    [
        ({}, FROM_LATEST),
        ({"startingOffsets": "Earliest"}, FROM_EARLIEST),
        (
            {"startingOffsets": '{"a": {"0": 5, "1": -2}}'},
            GivenOffsets("startingOffsets", {A0: 5, A1: -2}),
        ),
        (
            {"startingTimestamp": "9", "startingOffsets": "latest"},
            GivenTimes("startingTimestamp", 9, {}, False),
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"a": {"0": 5}}',
                "startingOffsetsByTimestampStrategy": "latest",
            },
            GivenTimes("startingOffsetsByTimestamp", None, {A0: 5}, True),
        ),
    ],
)
def test_starts_are_parsed(options: dict[str, str], bound: object) -> None:
    assert read_start(Options(options), FROM_LATEST) == bound


@pytest.mark.parametrize(
    "text",
    [
        "now",
        "",
        "[]",
        "{}",
        '{"a": 5}',
        '{"a": {"x": 5}}',
        '{"a": {"0": "5"}}',
        '{"a": {"0": -3}}',
        '{"a": {"0": 9223372036854775808}}',
    ],
)
def test_an_error_about_a_start_shows_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"option startingOffsets must be JSON like"):
        read_start(Options({"startingOffsets": text}), FROM_LATEST)


def test_a_batch_cannot_start_at_its_end() -> None:
    cases: list[tuple[Bound, Bound, str]] = [
        (FROM_LATEST, FROM_LATEST, "startingOffsets cannot be latest"),
        (FROM_EARLIEST, FROM_EARLIEST, "endingOffsets cannot be earliest"),
        (GivenOffsets("startingOffsets", {A0: LATEST}), FROM_LATEST, "a-0 cannot be -1"),
        (FROM_EARLIEST, GivenOffsets("endingOffsets", {A0: EARLIEST}), "a-0 cannot be -2"),
    ]
    for start, end, words in cases:
        with pytest.raises(ConfigError, match=words):
            check_batch(start, end)


def test_given_offsets_must_cover_the_subscription() -> None:
    bound = GivenOffsets("startingOffsets", {A0: 3})
    with pytest.raises(ConfigError, match=r"must name every partition: a-1, b-0 missing"):
        timestamps_to_list(bound, [A0, A1, B0])
    with pytest.raises(ConfigError, match="a-0 is not subscribed"):
        timestamps_to_list(bound, [])


def test_bounds_are_resolved_from_list_offsets() -> None:
    assert timestamps_to_list(FROM_EARLIEST, [A0]) == {A0: EARLIEST}
    mixed = GivenOffsets("startingOffsets", {A0: 3, A1: LATEST})
    assert timestamps_to_list(mixed, [A0, A1]) == {A1: LATEST}
    assert resolved_offsets(mixed, {A1: Offset(9)}, {}) == {A0: 3, A1: 9}
    times = GivenTimes("endingTimestamp", 77, {}, True)
    assert timestamps_to_list(times, [A0, A1]) == {A0: 77, A1: 77}
    found = {A0: Offset(4), A1: Offset(-1)}
    assert resolved_offsets(times, found, {A1: Offset(8)}) == {A0: 4, A1: 8}


def test_a_bound_that_means_the_present_end_is_recognized() -> None:
    found = {A0: Offset(4), A1: Offset(-1)}
    assert at_end(FROM_LATEST, found) == {A0, A1}
    assert at_end(FROM_EARLIEST, found) == frozenset()
    mixed = GivenOffsets("startingOffsets", {A0: EARLIEST, A1: LATEST})
    assert at_end(mixed, {A0: Offset(0), A1: Offset(9)}) == {A1}
    assert at_end(GivenTimes("startingTimestamp", 77, {}, True), found) == {A1}
    assert at_end(GivenTimes("startingTimestamp", 77, {}, False), {A0: Offset(4)}) == frozenset()


def test_a_time_past_the_last_record_is_an_error_with_advice() -> None:
    bound = read_start(Options({"startingTimestamp": "77"}), FROM_LATEST)
    with pytest.raises(ConfigError, match="startingOffsetsByTimestampStrategy to latest"):
        resolved_offsets(bound, {A0: Offset(-1)}, {A0: Offset(8)})
    assert isinstance(read_end(Options({"endingTimestamp": "77"})), GivenTimes)


def topic(name: str, partitions: int, *, internal: bool = False) -> TopicMetadata:
    broker = BrokerId(1)
    held = {
        index: PartitionMetadata(index, broker, LeaderEpoch(0), (broker,), (broker,), ())
        for index in range(partitions)
    }
    return TopicMetadata(name, NO_UUID, internal, held)


TOPICS = {
    each.name: each for each in (topic("a", 2), topic("b", 1), topic("__x", 1, internal=True))
}


@pytest.mark.parametrize(
    ("options", "subscription", "names", "partitions", "missing"),
    [
        ({"subscribe": " b, a ,b"}, SubscribedTopics(("b", "a")), ["b", "a"], [B0, A0, A1], []),
        ({"subscribe": "a,c"}, SubscribedTopics(("a", "c")), ["a", "c"], [A0, A1], ["topic c"]),
        ({"subscribePattern": "[ab]|__x"}, Pattern("[ab]|__x"), None, [A0, A1, B0], []),
        ({"subscribePattern": "a.+"}, Pattern("a.+"), None, [], []),
        (
            {"assign": '{"a": [1, 7], "c": [0]}'},
            Assigned((A1, TopicPartition("a", 7), TopicPartition("c", 0))),
            ["a", "c"],
            [A1],
            ["partition a-7", "partition c-0"],
        ),
    ],
)
def test_subscriptions_are_resolved(
    options: dict[str, str],
    subscription: object,
    names: list[str] | None,
    partitions: list[TopicPartition],
    missing: list[str],
) -> None:
    found = read_subscription(Options(options))
    assert found == subscription
    assert wanted_names(found) == names
    assert subscribed(found, TOPICS) == (partitions, missing)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "exactly one of subscribe, subscribePattern, assign"),
        ({"subscribe": "a", "assign": "{}"}, "subscribe and assign is given"),
        ({"subscribe": " , "}, "names no topic"),
        ({"subscribePattern": "(a"}, "option subscribePattern"),
        ({"assign": "a:0"}, "option assign must be JSON like"),
        ({"assign": '{"a": 0}'}, "option assign must be JSON like"),
        ({"assign": '{"a": ["0"]}'}, "'0' is not a partition"),
        ({"assign": "{}"}, "names no partition"),
    ],
)
def test_bad_subscriptions_are_errors(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_subscription(Options(options))
