"""The driver's lookups, with responses of brokers that know less than others."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.client.errors import ALWAYS_RETRIABLE, BrokerRefused
from penstock.client.metadata import TopicMetadata
from penstock.spark.source.lookup import topics_of
from penstock.spark.source.subscription import SubscribedTopics
from penstock.types import NO_UUID, TopicPartition, Uuid

FIRST, SECOND = Uuid(b"1" * 16), Uuid(b"2" * 16)
KNOWN = {TopicPartition("t", 0): FIRST, TopicPartition("t", 1): FIRST}


class Brokers:
    """Answers metadata requests with these numbers of partitions and ids, one after the other."""

    def __init__(self, *answers: tuple[int, Uuid]) -> None:
        self.left = list(answers)

    def existing(self, _names: object) -> dict[str, TopicMetadata]:
        count, topic_id = self.left.pop(0)
        partitions: Any = dict.fromkeys(range(count))
        return {"t": TopicMetadata("t", topic_id, False, partitions)} if count else {}

    def retrying(self, attempt: Callable[[], Any]) -> Any:
        while True:
            try:
                return attempt()
            except BrokerRefused as error:
                if error.code not in ALWAYS_RETRIABLE or not self.left:
                    raise


UNKNOWN = dict.fromkeys(KNOWN, NO_UUID)


@pytest.mark.parametrize(
    ("names", "answers", "asked"),
    [
        ("t", [(0, FIRST), (1, FIRST), (2, FIRST)], 3),
        ("t", [(0, FIRST), (0, FIRST)], 2),  # deleted
        ("t", [(1, FIRST), (1, FIRST)], 2),  # recreated with fewer partitions
        ("other", [(0, FIRST), (2, FIRST)], 1),  # not subscribed to any more
    ],
)
def test_a_topic_is_taken_for_deleted_only_after_the_whole_timeout(
    names: str, answers: list[tuple[int, Uuid]], asked: int
) -> None:
    brokers: Any = Brokers(*answers)
    found = topics_of(brokers, SubscribedTopics((names,)), UNKNOWN, waits_for_deleted=True)
    assert len(answers) - len(brokers.left) == asked
    assert len(found["t"].partitions if found else ()) == answers[asked - 1][0]


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ([(1, FIRST), (1, FIRST), (2, FIRST)], 3),  # it did not know the new partition
        ([(3, FIRST), (2, FIRST)], 1),
        ([(1, SECOND), (2, FIRST)], 1),  # recreated with fewer partitions
        ([(0, FIRST), (2, FIRST)], 1),  # deleted
    ],
)
def test_a_partition_of_the_same_topic_is_not_taken_for_gone(
    answers: list[tuple[int, Uuid]], asked: int
) -> None:
    brokers: Any = Brokers(*answers)
    topics_of(brokers, SubscribedTopics(("t",)), KNOWN)
    assert len(answers) - len(brokers.left) == asked


def test_a_deleted_topic_does_not_hide_a_partition_that_exists() -> None:
    """Without its partition 1, a checkpoint would lose the position in it."""
    brokers: Any = Brokers((1, FIRST), (1, FIRST))
    known = {TopicPartition("deleted", 0): FIRST} | KNOWN
    topics = SubscribedTopics(("deleted", "t"))
    with pytest.raises(BrokerRefused, match="t-1"):
        topics_of(brokers, topics, known, waits_for_deleted=True)
