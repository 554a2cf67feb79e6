"""The share-partitions of a broker, and the ends of sessions."""

from types import SimpleNamespace
from typing import Any, cast

from penstock.broker.share.sessions import ShareSessionKey
from penstock.broker.share.share_partitions import SharePartitions
from penstock.coordinator.group.consumer.member import TopicIdPartition
from penstock.testing.clock import ManualClock
from penstock.types import TopicPartition, Uuid

GROUPS, PARTITIONS = 50, 20
TOPIC = Uuid(b"t" * 16)


class Group(str):
    """Counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Group.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class Persister:
    """Answers nothing: the share-partitions stay in the state of being loaded."""

    def call(self, *_: object) -> None: ...


def partition(index: int) -> Any:
    return SimpleNamespace(
        topic_partition=TopicPartition("t", index),
        tenure=1,
        leader_epoch=1,
        is_in_tenure=lambda _: True,
    )


def test_the_end_of_a_session_concerns_its_own_group_only() -> None:
    """A connection may end thousands of sessions at once, each in another group."""
    fake = cast("Any", SimpleNamespace(changed=lambda _: None))
    shares = SharePartitions(
        fake, None, cast("Any", Persister()), fake, fake, ManualClock(), fake, fake
    )
    for number in range(GROUPS):
        group, connection = Group(f"g-{number}"), 1 if number else 2
        shares.sessions.open(
            ShareSessionKey(group, "m"), connection, acknowledges=False, most=GROUPS
        )
        for index in range(PARTITIONS):
            each = TopicIdPartition(TOPIC, index)
            assert shares.get(group, each, partition(index)) is shares.known(group, each)
    assert len(list(shares)) == GROUPS * PARTITIONS
    Group.compared = 0
    shares.connection_closed(1)
    assert Group.compared < GROUPS * GROUPS
    assert {each.key.group for each in shares} == {"g-0"}
    shares.connection_closed(2)
    assert not list(shares)
