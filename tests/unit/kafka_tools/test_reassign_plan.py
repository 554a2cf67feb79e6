"""Proposals of `kafka-reassign-partitions.sh --generate`."""

from uuid import UUID

import pytest

from penstock.client.metadata import PartitionMetadata, TopicMetadata
from penstock.kafka_tools.reassign_plan import proposal
from penstock.types import BrokerId, LeaderEpoch, Uuid


def topic(partitions: int, *replicas: int) -> TopicMetadata:
    brokers = tuple(map(BrokerId, replicas))
    return TopicMetadata(
        "t",
        Uuid(UUID(int=7).bytes),
        is_internal=False,
        partitions={
            index: PartitionMetadata(index, brokers[0], LeaderEpoch(0), brokers, brokers, ())
            for index in range(partitions)
        },
    )


@pytest.mark.parametrize("rack", [None, "a"])
def test_workers_of_one_host_are_kept_apart(rack: str | None) -> None:
    hosts = {BrokerId(each): f"host{each // 2}" for each in range(4)}
    for _ in range(20):  # the first broker is chosen at random
        plan = proposal(topic(8, 0, 1), dict.fromkeys(hosts, rack), hosts)
        assert len(plan) == 8
        for target in plan.values():
            assert {hosts[each] for each in target.brokers} == {"host0", "host1"}
