"""The fast path of heartbeats: for plain heartbeats in a stable group."""

import pytest

from penstock.coordinator.group.consumer.heartbeat import ConsumerHeartbeat, fast_heartbeat
from penstock.coordinator.group.consumer.member import NO_PARTITIONS, ConsumerGroupMember
from support.groups.consumer_members import Cluster, Consumer, settle
from support.groups.group_transcript import GROUP


def fast(cluster: Cluster, request: ConsumerHeartbeat) -> ConsumerGroupMember | None:
    return fast_heartbeat(
        cluster.group, request, cluster.shard.context(GROUP, cluster.groups.runtime.now())
    )


@pytest.fixture
def settled() -> Cluster:
    cluster = Cluster()
    members = [Consumer(cluster, "a", "i"), Consumer(cluster, "b")]
    for each in members:
        each.join()
    settle(*members)
    return cluster


def test_a_plain_heartbeat_takes_the_fast_path(settled: Cluster) -> None:
    settled.pass_ms(100)
    before = settled.group.members["b"]
    after = fast(settled, ConsumerHeartbeat(member_id="b", epoch=before.epoch))
    assert after is not None
    assert after.deadline_ms == before.deadline_ms + 100


@pytest.mark.parametrize(
    "changes",
    [
        {"topics": frozenset({"t"})},
        {"regex": "t.*"},
        {"assignor": "range"},
        {"rack_id": "r"},
        {"rebalance_timeout_ms": 1},
        {"client_id": "another"},
        {"client_host": "/10.0.0.1"},
        {"instance_id": "j"},
        {"epoch": 0, "owned": NO_PARTITIONS},
        {"epoch": -1},
        {"epoch": 99},
        {"member_id": "c"},
    ],
)
def test_a_heartbeat_that_changes_something_takes_the_slow_path(
    settled: Cluster, changes: dict[str, object]
) -> None:
    request = {"member_id": "a", "epoch": settled.group.epoch, "instance_id": "i"} | changes
    assert fast(settled, ConsumerHeartbeat(**request)) is None  # type: ignore[arg-type]


def test_a_heartbeat_in_a_group_with_pending_changes_takes_the_slow_path(settled: Cluster) -> None:
    epoch = settled.group.epoch
    settled.set_topics(t=5)
    assert fast(settled, ConsumerHeartbeat(member_id="b", epoch=epoch)) is None
    settled.beat(member_id="b", epoch=epoch)
    assert settled.group.epoch > epoch
    assert fast(settled, ConsumerHeartbeat(member_id="a", epoch=epoch)) is None
