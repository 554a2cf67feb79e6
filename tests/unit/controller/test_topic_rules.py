"""Names and partition counts that a topic may have."""

import pytest

from penstock.controller.topic_rules import (
    InvalidPartitions,
    InvalidTopic,
    TopicAlreadyExists,
    check_name,
    check_new_name,
    more_partitions,
    new_partitions,
)
from penstock.errors import InvalidRequest


@pytest.mark.parametrize("name", ["a", "A-b_c.d", "0", "...", "x" * 249, "__consumer_offsets"])
def test_legal_names_are_accepted(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ü", "a\n", "a,b"])
def test_illegal_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidTopic):
        check_name(name)


def test_an_existing_name_is_refused() -> None:
    with pytest.raises(TopicAlreadyExists):
        check_new_name("a.b", ["x", "a.b"])


def test_names_that_differ_in_dots_and_underscores_only_collide() -> None:
    with pytest.raises(InvalidTopic, match=r"a\.b"):
        check_new_name("a_b", ["x", "a.b"])
    check_new_name("a-b", ["a.b"])


def test_the_metadata_log_is_not_a_topic() -> None:
    with pytest.raises(InvalidRequest):
        check_new_name("__cluster_metadata", [])


def test_partitions_are_positive_or_the_default() -> None:
    assert new_partitions(-1, 5) == 5
    assert new_partitions(7, 5) == 7
    for asked in (0, -2):
        with pytest.raises(InvalidPartitions):
            new_partitions(asked, 5)


def test_partitions_only_grow() -> None:
    assert more_partitions("t", 3, 5) == 2
    for asked in (3, 2, 0, -1):
        with pytest.raises(InvalidPartitions):
            more_partitions("t", 3, asked)
