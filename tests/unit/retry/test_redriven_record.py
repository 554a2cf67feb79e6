"""The record that a redriven dead letter becomes."""

import pytest

from penstock.client.record_sender import ProducerRecord
from penstock.config.delay_route import Route, route_of
from penstock.record.dead_letter import (
    DeadLetter,
    Header,
    dead_letter_headers,
    read_dead_letter,
    share_letter_headers,
)
from penstock.record.record import Record
from penstock.retry.letters import Letter
from penstock.retry.redriven_record import RefusedLetter, redriven_record, target_of
from penstock.types import TopicPartition


def letter(topic: str | None, partition: int | None = 1, *more: Header) -> Letter:
    dead = DeadLetter(error="e", source="sdk", topic=topic, partition=partition, attempt=3)
    headers = dead_letter_headers(dead, [("trace", b"1"), *more])
    record = Record(9, 1234, b"k", b"v", headers)
    return Letter(TopicPartition("x.dlq", 0), record, read_dead_letter(headers))


def routes(**to: str) -> dict[str, Route]:
    made = {topic: route_of(topic, {"penstock.retry.to": target}) for topic, target in to.items()}
    return {topic: route for topic, route in made.items() if route is not None}


def test_the_target_is_found() -> None:
    assert target_of(letter("orders"), None, {}) == "orders"
    assert target_of(letter("orders"), "other", {}) == "other"
    assert target_of(letter("again"), None, routes(again="orders")) == "orders"
    delay = route_of("later", {"penstock.delay.to": "orders"})
    assert delay is not None
    assert target_of(letter("later"), None, {"later": delay}) == "later"


@pytest.mark.parametrize("origin", [None, "__consumer_offsets", "x.dlq"])
def test_some_targets_are_refused(origin: str | None) -> None:
    assert isinstance(target_of(letter(origin), None, {}), RefusedLetter)
    if origin is not None:
        assert isinstance(target_of(letter("orders"), origin, {}), RefusedLetter)


def test_the_original_record_is_restored() -> None:
    found = redriven_record(
        letter("orders", 1, ("penstock-delay-ms", b"1")), "orders", {"orders": 2}
    )
    assert found == ProducerRecord("orders", b"v", b"k", [("trace", b"1")], 1, 1234)


@pytest.mark.parametrize(
    ("partition", "counts", "expected"),
    [
        (1, {"again": 2, "orders": 2}, 1),
        (1, {"again": 2, "orders": 3}, None),
        (1, {"orders": 2}, None),
        (7, {"again": 2, "orders": 2}, None),
        (None, {"again": 2, "orders": 2}, None),
    ],
)
def test_the_partition_is_kept_between_topics_with_equal_partition_counts(
    partition: int | None, counts: dict[str, int], expected: int | None
) -> None:
    found = redriven_record(letter("again", partition), "orders", counts)
    assert isinstance(found, ProducerRecord)
    assert found.partition == expected


def test_a_missing_topic_is_refused() -> None:
    assert redriven_record(letter("orders"), "orders", {}) == RefusedLetter(
        "topic orders does not exist"
    )


def test_a_dead_letter_of_a_share_group_without_its_record_is_not_redriven() -> None:
    headers = share_letter_headers(
        DeadLetter(error="rejected", source="share", topic="orders", partition=1, offset=7), ()
    )
    record = Record(0, 5, None, None, headers)
    found = Letter(TopicPartition("dlq.orders", 0), record, read_dead_letter(headers))
    refused = redriven_record(found, "orders", {"orders": 2})
    assert isinstance(refused, RefusedLetter)
    assert "orders-1 7" in refused.reason
