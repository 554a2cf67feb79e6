"""The events of the timeline, derived from two snapshots."""

from dataclasses import replace

from penstock.advice.snapshot import ClusterSnapshot
from penstock.client.address import Address
from penstock.client.metadata import BrokerNode, ClusterMetadata, PartitionMetadata, TopicMetadata
from penstock.console.timeline import events
from penstock.types import BrokerId, LeaderEpoch, Uuid


def seen(
    brokers: tuple[int, ...], controller: int, *partitions: tuple[int, tuple[int, ...]]
) -> ClusterSnapshot:
    """Partitions by leader and ISR."""
    nodes = {
        BrokerId(each): BrokerNode(BrokerId(each), Address("h", each), None) for each in brokers
    }
    described = {
        index: PartitionMetadata(
            index,
            BrokerId(leader),
            LeaderEpoch(0),
            (BrokerId(1), BrokerId(2)),
            tuple(map(BrokerId, isr)),
            (),
        )
        for index, (leader, isr) in enumerate(partitions)
    }
    topic = TopicMetadata("t", Uuid(bytes(16)), is_internal=False, partitions=described)
    return ClusterSnapshot(ClusterMetadata("c", BrokerId(controller), nodes), [topic])


WHOLE = seen((1, 2), 1, (1, (1, 2)), (2, (1, 2)))
HALF = seen((2,), 2, (2, (2,)), (2, (2,)))


def reported(before: ClusterSnapshot, now: ClusterSnapshot) -> list[tuple[str, str]]:
    return [(each.kind, each.what) for each in events(before, now, 5)]


def test_a_failover_is_reported_in_order() -> None:
    assert reported(WHOLE, HALF) == [
        ("broker_gone", "broker 1 is gone"),
        ("controller", "broker 2 is the controller; it was broker 1"),
        ("leaders_moved", "broker 2 leads 1 partition: t-0, which broker 1 led"),
        ("isr_shrunk", "broker 1 left the ISR of 2 partitions: t-0, t-1"),
    ]
    assert all(each.at_ms == 5 for each in events(WHOLE, HALF, 5))


def test_a_returning_broker_is_reported() -> None:
    assert reported(HALF, WHOLE) == [
        ("broker_back", "broker 1 is there"),
        ("controller", "broker 1 is the controller; it was broker 2"),
        ("leaders_moved", "broker 1 leads 1 partition: t-0, which broker 2 led"),
        ("isr_expanded", "broker 1 joined the ISR of 2 partitions: t-0, t-1"),
    ]


def test_partitions_without_a_leader_are_offline() -> None:
    down = seen((2,), -1, (-1, (1,)), (2, (1, 2)))
    assert ("offline", "1 partition: t-0 lost the leader, broker 1") in reported(WHOLE, down)
    assert ("controller", "there is no controller; it was broker 1") in reported(WHOLE, down)
    assert ("online", "broker 1 leads 1 partition: t-0, which had no leader") in reported(
        down, WHOLE
    )
    assert ("controller", "broker 1 is the controller") in reported(down, WHOLE)


def test_unchanged_state_and_new_topics_cause_no_event() -> None:
    assert reported(WHOLE, WHOLE) == []
    assert reported(replace(WHOLE, topics=[]), WHOLE) == []
