"""The share-partitions of a broker, and the ends of sessions."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.broker.share import share_partitions
from penstock.broker.share.sessions import ShareSessionKey
from penstock.broker.share.share_partitions import SharePartitions
from penstock.broker.share.state_calls import ReadState, StateCall, WriteState
from penstock.config.share import ShareConfig
from penstock.coordinator.share.state import NO_START, ShareGroupOffset
from penstock.testing.clock import ManualClock
from penstock.types import TopicIdPartition, TopicPartition, Uuid

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


class NewGroups:
    """A persister without state of any group; it collects the work that waits for the store."""

    def __init__(self) -> None:
        self.work: list[Coroutine[Any, Any, None]] = []
        self.started: list[StateCall[Any]] = []

    def call(self, call: StateCall[Any], then: Callable[[Any], object]) -> None:
        if isinstance(call, ReadState):
            then(
                ShareGroupOffset(
                    snapshot_epoch=0, state_epoch=1, leader_epoch=1, start_offset=NO_START
                )
            )
        else:
            self.started.append(call)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.work.append(work)


def test_partitions_that_begin_together_read_their_groups_settings_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads: list[str] = []

    async def read(_: object, group: str) -> dict[str, str]:
        reads.append(group)
        return {"share.auto.offset.reset": "earliest"}

    monkeypatch.setattr(share_partitions, "read_group_config", read)
    fake = cast(
        "Any", SimpleNamespace(changed=lambda _: None, config=SimpleNamespace(share=ShareConfig()))
    )
    persister = NewGroups()
    shares = SharePartitions(
        fake, fake, cast("Any", persister), fake, fake, ManualClock(), fake, fake
    )
    for group in ("one", "two"):
        for index in range(PARTITIONS):
            begun = partition(index)
            begun.log = SimpleNamespace(high_watermark=9, log_start_offset=4)
            shares.get(group, TopicIdPartition(TOPIC, index), begun)
    for work in persister.work:
        asyncio.run(work)
    assert reads == ["one", "two"]
    starts = [cast("WriteState", each).update.start_offset for each in persister.started]
    assert starts == [4] * 2 * PARTITIONS
    persister.work.clear()
    later = partition(PARTITIONS)
    later.log = SimpleNamespace(high_watermark=9, log_start_offset=4)
    shares.get("one", TopicIdPartition(TOPIC, PARTITIONS), later)
    assert len(persister.work) == 1, "the group may have been altered since"
    asyncio.run(persister.work[0])
    assert reads == ["one", "two", "one"]
