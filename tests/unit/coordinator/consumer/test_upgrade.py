"""Which classic groups become groups of the consumer protocol."""

import pytest

from consumer_members import Cluster, Consumer
from group_transcript import GROUP
from penstock.config.group import GroupConfig
from penstock.coordinator.group.join import Joining
from penstock.coordinator.group.member import Joined, ProtocolMetadata, Synced
from penstock.coordinator.group.membership import Syncing
from penstock.coordinator.group.refusal import GroupIdNotFound
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

SUBSCRIPTION = b"\0\1" + encode(ConsumerProtocolSubscription(topics=["t"]), 1)


def classic_group(cluster: Cluster, strategy: str, *shares: ConsumerProtocolAssignment) -> None:
    """A stable group with a member for each share, which the first one hands in."""
    tickets = [
        cluster.groups.join(
            GROUP,
            Joining(
                new_member_id=f"m{number}",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=5000,
                protocol_type="consumer",
                protocols=(ProtocolMetadata(strategy, SUBSCRIPTION),),
            ),
        )
        for number in range(len(shares))
    ]
    cluster.pass_ms(3001)
    assert all(isinstance(ticket.reply, Joined) for ticket in tickets)
    told = {f"m{number}": b"\0\1" + encode(share, 1) for number, share in enumerate(shares)}
    ticket = cluster.groups.sync(GROUP, Syncing(member_id="m0", generation=1, assignments=told))
    assert isinstance(ticket.reply, Synced)


def share(*partitions: int, user_data: bytes | None = None) -> ConsumerProtocolAssignment:
    return ConsumerProtocolAssignment([TopicPartition("t", list(partitions))], user_data)


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
def test_what_sticky_assignors_send_along_is_no_obstacle(strategy: str) -> None:
    """librdkafka's leader sends each member's own data back to it."""
    cluster = Cluster()
    classic_group(cluster, strategy, share(0, 1, 2, 3, user_data=b"what it had"))
    Consumer(cluster, "a").join()
    assert len(cluster.group.members["m0"].assigned) == 4


def test_data_of_an_assignor_that_nobody_knows_would_be_lost() -> None:
    cluster = Cluster()
    classic_group(cluster, "own", share(0, 1, 2, 3, user_data=b"precious"))
    with pytest.raises(GroupIdNotFound, match="data of its own"):
        Consumer(cluster, "a").join()
    assert cluster.shard.groups[GROUP].members


def test_a_partition_that_an_assignor_gave_to_two_is_not_taken_over() -> None:
    cluster = Cluster()
    classic_group(cluster, "range", share(0, 1), share(1, 2))
    with pytest.raises(GroupIdNotFound, match="same partition"):
        Consumer(cluster, "a").join()


def test_a_group_larger_than_the_consumer_protocol_allows_stays_classic() -> None:
    cluster = Cluster(config=GroupConfig(group_consumer_max_size=1))
    classic_group(cluster, "range", share(0, 1), share(2, 3))
    with pytest.raises(GroupIdNotFound, match=r"group\.consumer\.max\.size"):
        Consumer(cluster, "a").join()


def test_the_history_of_a_group_survives_the_change() -> None:
    cluster = Cluster()
    classic_group(cluster, "range", share(0, 1, 2, 3))
    Consumer(cluster, "a").join()
    assert [each.generation for each in cluster.shard.rebalances.of(GROUP)] == [1]
