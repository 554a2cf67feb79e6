"""Which heartbeats take the short way: those of members that say nothing, in a group at rest."""

import pytest

from consumer_members import Cluster, Consumer, settle
from group_transcript import GROUP
from penstock.coordinator.group.consumer.heartbeat import ConsumerHeartbeat, fast_heartbeat
from penstock.coordinator.group.consumer.member import NO_PARTITIONS, ConsumerGroupMember


def heard(cluster: Cluster, request: ConsumerHeartbeat) -> ConsumerGroupMember | None:
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


def test_a_member_that_only_lives_is_heard_of(settled: Cluster) -> None:
    settled.pass_ms(100)
    before = settled.group.members["b"]
    after = heard(settled, ConsumerHeartbeat(member_id="b", epoch=before.epoch))
    assert after is not None
    assert after.deadline_ms == before.deadline_ms + 100


@pytest.mark.parametrize(
    "said",
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
def test_one_that_says_more_is_not(settled: Cluster, said: dict[str, object]) -> None:
    request = {"member_id": "a", "epoch": settled.group.epoch, "instance_id": "i"} | said
    assert heard(settled, ConsumerHeartbeat(**request)) is None  # type: ignore[arg-type]


def test_nor_one_whose_group_has_something_to_do(settled: Cluster) -> None:
    epoch = settled.group.epoch
    settled.set_topics(t=5)
    assert heard(settled, ConsumerHeartbeat(member_id="b", epoch=epoch)) is None
    settled.beat(member_id="b", epoch=epoch)
    assert settled.group.epoch > epoch
    assert heard(settled, ConsumerHeartbeat(member_id="a", epoch=epoch)) is None
