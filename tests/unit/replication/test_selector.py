"""Which replica a consumer may read from (KIP-392)."""

import pytest

from penstock.replication.selector import ReplicaView, in_same_rack, is_rack_aware

LEADER = ReplicaView(1, "a", 100, 0)


@pytest.mark.parametrize(
    ("name", "rack_aware"),
    [
        (None, False),
        ("", False),
        ("org.apache.kafka.common.replica.RackAwareReplicaSelector", True),
        ("RackAwareReplicaSelector", True),
        ("org.apache.kafka.common.replica.LeaderSelector", False),
    ],
)
def test_kafkas_class_name_chooses_the_rack(name: str | None, rack_aware: bool) -> None:
    assert is_rack_aware(name) is rack_aware


@pytest.mark.parametrize(
    ("rack", "followers", "chosen"),
    [
        ("b", [ReplicaView(2, "b", 90, 5)], 2),
        ("a", [ReplicaView(2, "a", 100, 0)], None),  # the leader is just as near
        ("", [ReplicaView(2, "b", 100, 0)], None),
        ("c", [ReplicaView(2, "b", 100, 0)], None),
        ("b", [ReplicaView(2, "b", 90, 5), ReplicaView(3, "b", 91, 9)], 3),
        ("b", [ReplicaView(2, "b", 90, 5), ReplicaView(3, "b", 90, 4)], 3),
        ("b", [ReplicaView(3, "b", 90, 5), ReplicaView(2, "b", 90, 5)], 3),
        ("b", [], None),
    ],
)
def test_the_most_caught_up_follower_of_the_rack_is_selected(
    rack: str, followers: list[ReplicaView], chosen: int | None
) -> None:
    assert in_same_rack(rack, LEADER, followers) == chosen
