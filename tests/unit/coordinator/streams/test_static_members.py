"""Static members of streams groups (Kafka 4.4) keep their tasks while they are away."""

from typing import Any

import pytest

from penstock.coordinator.group.consumer.errors import (
    FencedMemberEpoch,
    InvalidHeartbeat,
    UnreleasedInstanceId,
)
from penstock.coordinator.group.errors import FencedInstanceId, UnknownMemberId
from support.groups.streams_members import StreamsCluster, StreamsThread, settle


@pytest.fixture
def cluster() -> StreamsCluster:
    return StreamsCluster()


def join(thread: StreamsThread, instance_id: str = "i", **fields: Any) -> None:
    thread.join(instance_id=instance_id, **fields)


@pytest.fixture
def pair(cluster: StreamsCluster) -> tuple[StreamsThread, StreamsThread]:
    """A static member and another one, with two tasks each."""
    a, b = StreamsThread(cluster, "a", process="p"), StreamsThread(cluster, "b")
    join(a)
    b.join()
    settle(a, b)
    return a, b


def test_tasks_wait_for_a_static_member_that_returns_under_another_id(
    cluster: StreamsCluster, pair: tuple[StreamsThread, StreamsThread]
) -> None:
    a, b = pair
    kept, others, epoch = a.has, b.has, cluster.group.epoch
    assert a.beat(epoch=-2, instance_id="i").epoch == -2
    for _ in range(3):
        b.beat()
    assert b.has == others
    back = StreamsThread(cluster, "c", process="p")
    join(back)
    assert back.has == kept, "at once"
    assert cluster.group.epoch == epoch, "nobody is reassigned"
    assert set(cluster.group.members) == {"b", "c"}
    with pytest.raises(UnknownMemberId):
        a.beat(epoch=epoch)


def test_a_static_member_may_return_under_the_same_id(
    cluster: StreamsCluster, pair: tuple[StreamsThread, StreamsThread]
) -> None:
    a, _ = pair
    kept = a.has
    a.beat(epoch=-2, instance_id="i")
    cluster.start()
    assert cluster.group.members["a"].is_away, "a new coordinator knows"
    join(a)
    assert a.has == kept


def test_a_static_member_that_does_not_return_times_out(
    cluster: StreamsCluster, pair: tuple[StreamsThread, StreamsThread]
) -> None:
    a, b = pair
    a.beat(epoch=-2, instance_id="i")
    cluster.pass_ms(40_000)
    b.beat()
    cluster.pass_ms(10_000)
    settle(b)
    assert len(b.has.active) == 4


def test_a_late_heartbeat_does_not_bring_a_static_member_back(
    cluster: StreamsCluster, pair: tuple[StreamsThread, StreamsThread]
) -> None:
    a, _ = pair
    late = cluster.group.members["a"].previous_epoch
    assert 0 < late < a.epoch
    a.beat(epoch=-2, instance_id="i")
    with pytest.raises(FencedMemberEpoch):
        a.beat(
            epoch=late, instance_id="i", active=frozenset(), standby=frozenset(), warmup=frozenset()
        )
    join(StreamsThread(cluster, "c", process="p"))


def test_an_instance_id_has_one_owner(
    cluster: StreamsCluster, pair: tuple[StreamsThread, StreamsThread]
) -> None:
    a, _ = pair
    with pytest.raises(UnreleasedInstanceId):
        join(StreamsThread(cluster, "c"))
    with pytest.raises(FencedInstanceId):
        a.beat(member_id="c", instance_id="i")
    with pytest.raises(UnknownMemberId):
        a.beat(instance_id="other")
    a.beat(epoch=-1, instance_id="i")
    join(StreamsThread(cluster, "c"))


@pytest.mark.parametrize(
    "fields", [{"instance_id": ""}, {"instance_id": "i", "version": 0}, {"epoch": -2}]
)
def test_invalid_static_members_are_refused(
    cluster: StreamsCluster, fields: dict[str, Any]
) -> None:
    with pytest.raises(InvalidHeartbeat):
        StreamsThread(cluster, "a").join(**fields)
