"""Which classic groups are upgraded to the consumer protocol."""

import pytest

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.member import Joined, ProtocolMetadata, Synced
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.errors import GroupIdNotFound
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from support.groups.consumer_members import Cluster, Consumer
from support.groups.group_transcript import GROUP

SUBSCRIPTION = b"\0\1" + encode(ConsumerProtocolSubscription(topics=["t"]), 1)


def classic_group(
    cluster: Cluster, strategy: str, *assignments: ConsumerProtocolAssignment
) -> None:
    """A stable group with a member for each assignment; the first member leads."""
    pending_replies = [
        cluster.groups.join(
            GROUP,
            GroupJoin(
                new_member_id=f"m{number}",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=5000,
                protocol_type="consumer",
                protocols=(ProtocolMetadata(strategy, SUBSCRIPTION),),
            ),
        )
        for number in range(len(assignments))
    ]
    cluster.pass_ms(3001)
    assert all(isinstance(pending.reply, Joined) for pending in pending_replies)
    encoded = {
        f"m{number}": b"\0\1" + encode(assignment, 1)
        for number, assignment in enumerate(assignments)
    }
    pending = cluster.groups.sync(
        GROUP, GroupSync(member_id="m0", generation=1, assignments=encoded)
    )
    assert isinstance(pending.reply, Synced)


def assignment(*partitions: int, user_data: bytes | None = None) -> ConsumerProtocolAssignment:
    return ConsumerProtocolAssignment([TopicPartition("t", list(partitions))], user_data)


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_user_data_of_sticky_assignors_does_not_prevent_an_upgrade(strategy: str) -> None:
    """librdkafka's leader sends each member's user data back to it."""
    cluster = Cluster()
    classic_group(cluster, strategy, assignment(0, 1, 2, 3, user_data=b"what it had"))
    Consumer(cluster, "a").join()
    assert len(cluster.group.members["m0"].assigned) == 4


def test_user_data_of_a_custom_assignor_prevents_an_upgrade() -> None:
    cluster = Cluster()
    classic_group(cluster, "own", assignment(0, 1, 2, 3, user_data=b"precious"))
    with pytest.raises(GroupIdNotFound, match="data of its own"):
        Consumer(cluster, "a").join()
    assert cluster.shard.classic_groups[GROUP].members


def test_a_partition_with_two_owners_prevents_an_upgrade() -> None:
    cluster = Cluster()
    classic_group(cluster, "range", assignment(0, 1), assignment(1, 2))
    with pytest.raises(GroupIdNotFound, match="same partition"):
        Consumer(cluster, "a").join()


def test_a_group_larger_than_the_consumer_protocol_allows_stays_classic() -> None:
    cluster = Cluster(config=GroupConfig(group_consumer_max_size=1))
    classic_group(cluster, "range", assignment(0, 1), assignment(2, 3))
    with pytest.raises(GroupIdNotFound, match=r"group\.consumer\.max\.size"):
        Consumer(cluster, "a").join()


def test_the_rebalance_history_of_a_group_survives_an_upgrade() -> None:
    cluster = Cluster()
    classic_group(cluster, "range", assignment(0, 1, 2, 3))
    Consumer(cluster, "a").join()
    assert [each.generation for each in cluster.shard.rebalances.of(GROUP)] == [1]
